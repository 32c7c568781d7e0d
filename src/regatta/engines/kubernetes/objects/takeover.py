"""Jobs that the former paddle-operator left: read, adopted, and freed from its finalizer.

Finished ones are never started again. What runs goes on as it is: the pods are known by their
owner, their role by its label, their index by their name, and the environment they were given, a
ConfigMap of the job's own name, counts as the first revision. Pods that had not been given any are
replaced, because nobody is left to write it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from regatta.api.job import JobStatus, Phase
from regatta.controller import labels
from regatta.engines.kubernetes.api.models import Metadata, Pod

FINALIZER = "finalizers.paddlepaddle.org"

#: The environment revision that stands for the former operator's ConfigMap.
FIRST_REVISION = 1
#: Below every attempt: such a pod is stale whatever the job's memory says.
BEFORE_ALL_ATTEMPTS = -1

_PHASES = {
    "Succeed": Phase.COMPLETED,
    "Completing": Phase.RUNNING,
    "Terminated": Phase.ABORTED,
    "Unknown": None,
    "": None,
}


def is_former(pod: Pod) -> bool:
    """Made by the former operator: it wrote roles on its pods, but no attempts."""
    return labels.ATTEMPT not in pod.metadata.labels


def role_and_index(metadata: Metadata) -> tuple[str, int]:
    """From the label and the last part of the name, as the former operator had it."""
    role = metadata.labels.get(labels.UPSTREAM_ROLE, "")
    last = metadata.name.rpartition("-")[2]
    return role, int(last) if last.isdecimal() else -1


def started(pod: Pod) -> bool:
    return pod.status.phase not in ("", "Pending")


def read_status(text: bytes) -> JobStatus:
    """A status that is not quite ours: its phase in our words, the rest as far as it fits."""
    found: Any = msgspec.json.decode(text)
    if not isinstance(found, dict):
        return JobStatus()
    found = {key: value for key, value in found.items() if value is not None}
    phase = found.get("phase", "")
    if phase in _PHASES:
        found["phase"] = _PHASES[phase]
    try:
        return msgspec.convert(found, JobStatus)
    except msgspec.ValidationError:
        pass
    try:
        return JobStatus(phase=Phase(found["phase"]) if found.get("phase") else None)
    except ValueError:
        return JobStatus()


def without_finalizer(finalizers: tuple[str, ...]) -> list[str] | None:
    """What remains of a job's finalizers, or None when the former operator's is not among them."""
    if FINALIZER not in finalizers:
        return None
    return [kept for kept in finalizers if kept != FINALIZER]
