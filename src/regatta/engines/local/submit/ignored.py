"""What a pod asks for and this engine does not do: told, not refused."""

from __future__ import annotations

from typing import Any

from regatta.engines.local.replicas.containers import RUNTIMES

#: Fields of a pod and of a container that mean something on a cluster and nothing here.
_IGNORED_OF_POD = (
    "affinity", "dnsConfig", "hostAliases", "hostIPC", "hostPID", "imagePullSecrets", "nodeName",
    "nodeSelector", "overhead", "readinessGates", "runtimeClassName", "securityContext",
    "serviceAccountName", "shareProcessNamespace", "tolerations", "topologySpreadConstraints",
)  # fmt: skip
_IGNORED_OF_CONTAINER = (
    "lifecycle", "livenessProbe", "readinessProbe", "resizePolicy",
    "securityContext", "startupProbe", "terminationMessagePath", "volumeDevices",
)  # fmt: skip


def list_ignored(manifest: dict[str, Any], runtime: str = "none") -> list[str]:
    """Paths of what the pod asks for and this engine does not do, for a note to the person."""
    spec = manifest.get("spec") or {}
    ignored = [f"spec.{field}" for field in _IGNORED_OF_POD if spec.get(field)]
    for kind in ("initContainers", "containers"):
        for number, container in enumerate(spec.get(kind) or ()):
            fields = list(_IGNORED_OF_CONTAINER)
            if runtime not in RUNTIMES:
                fields = ["image", "imagePullPolicy", *fields]
            ignored += [f"spec.{kind}[{number}].{f}" for f in fields if container.get(f)]
    return ignored
