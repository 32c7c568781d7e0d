"""With `--initImage`: one init container that waits until the peers' names resolve.

The environment is written only when the cluster lists every name, but name servers may hold an
older answer for some seconds. Where peers are addresses there is nothing to wait for.
"""

from __future__ import annotations

from typing import Any

from regatta.api.job import Job
from regatta.controller.plan import NewPod
from regatta.engines.kubernetes.objects.children import names_needed

NAME = "coord-paddle"
_SCRIPT = 'for name in "$@"; do until nslookup "$name" >/dev/null 2>&1; do sleep 1; done; done'


def with_waiting(job: Job, pod: NewPod, image: str) -> dict[str, Any]:
    """The pod's manifest, with the init container where there are names to wait for."""
    if not image or not pod.by_name:
        return pod.manifest
    spec = pod.manifest["spec"]
    first = {
        "name": NAME,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["sh", "-c", _SCRIPT, "wait", *names_needed(job)],
        # Both, or a ResourceQuota on either refuses the pod.
        "resources": {
            "requests": {"cpu": "10m", "memory": "16Mi"},
            "limits": {"cpu": "100m", "memory": "32Mi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }
    waiting = [*(spec.get("initContainers") or ()), first]
    return {**pod.manifest, "spec": {**spec, "initContainers": waiting}}
