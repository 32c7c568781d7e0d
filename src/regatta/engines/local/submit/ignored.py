"""What a pod asks for and this engine does not do: told, not refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from regatta.api.job import Job
from regatta.api.problems import Problem
from regatta.engines.local.on_behalf.members_advice import advice_for
from regatta.engines.local.replicas.containers import RUNTIMES
from regatta.engines.local.store.records import Context

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


def ignored_of_config(job: Job, context: Context) -> Iterator[Problem]:
    """What one of OpenPAI's configs may ask for and this engine does not do, at its places in the
    job that it became: where it comes from, it was done. Images are passed over: each config must
    name one."""

    def warning(path: str, message: str) -> Problem:
        return Problem(path, message, "warning")

    contained = context.runtime in RUNTIMES
    policy = job.spec.scheduling_policy
    # A team's virtual clusters say who may use the machine, and that is done.
    if policy and policy.queue and not advice_for(context).on_behalf:
        yield warning(
            "spec.schedulingPolicy.queue",
            "there are no virtual clusters on this machine: all jobs wait in one line",
        )
    for i, role in enumerate(job.spec.tasks):
        at, pod = f"spec.tasks[{i}].template.spec", role.template.get("spec") or {}
        if pod.get("nodeSelector"):
            yield warning(
                f"{at}.nodeSelector",
                "it chooses nothing on this machine: tasks get the GPUs that are here",
            )
        if pod.get("imagePullSecrets"):
            who = "tasks run without containers on this machine, so that no image is pulled"
            if contained:
                who = (
                    f"{context.runtime} pulls images as whoever is signed in to it on this machine"
                )
            yield warning(f"{at}.imagePullSecrets", f"nobody signs in with it: {who}")
        if _bounded_memory(pod) and not (contained and context.folders is not None):
            yield warning(
                f"{at}.volumes", "it bounds nothing on this machine: all tasks share its /dev/shm"
            )


def _bounded_memory(pod: dict[str, Any]) -> bool:
    kinds = [volume.get("emptyDir") or {} for volume in pod.get("volumes") or ()]
    return any(kind.get("medium") == "Memory" and kind.get("sizeLimit") for kind in kinds)
