"""Dry runs, the same on every engine: a pod as it would stand once it is placed."""

from __future__ import annotations

from regatta.controller.plan import NewPod
from regatta.controller.world import Pod, PodPhase


def as_placed(pod: NewPod, host: str) -> Pod:
    return Pod(
        name=pod.name,
        uid=pod.name,
        role=pod.role,
        index=pod.index,
        attempt=pod.attempt,
        revision=pod.revision,
        phase=PodPhase.PENDING,
        scheduled=True,
        host=host,
        waits_for_environment=True,
    )
