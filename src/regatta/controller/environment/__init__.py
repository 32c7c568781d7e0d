"""What a replica sees.

Two parts: what all replicas share, known only when every one has an address (the ConfigMap that
pods wait for), and what is a replica's own, known when its pod is made (the pod's `env`).
"""

from __future__ import annotations

from regatta.api.job import Job, Mode
from regatta.controller.environment import paddle, pai
from regatta.controller.environment.places import Place, Variable


def shared(job: Job, places: dict[str, list[Place]]) -> dict[str, str]:
    write = pai.shared if job.spec.mode is Mode.CUSTOM else paddle.shared
    return write(job, places)


def own(job: Job, place: Place) -> list[Variable]:
    write = pai.own if job.spec.mode is Mode.CUSTOM else paddle.own
    return write(job, place)


__all__ = ["Place", "Variable", "own", "shared"]
