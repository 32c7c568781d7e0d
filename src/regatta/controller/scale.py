"""Another number of replicas: first the new ones are placed, then everybody starts again.

Nothing that runs is stopped before the larger size is known to fit, and nothing is scaled once a
trainer has succeeded: its share of the work would be done twice.
"""

from __future__ import annotations

from msgspec.structs import replace

from regatta.api.job import Job, Phase
from regatta.controller.attempts import new_attempt_of_all
from regatta.controller.gang import NATIVE, scheduler_of
from regatta.controller.observe import TRAINERS, World, spec_size
from regatta.controller.plan import Event


def first_size(job: Job) -> Job:
    """A job that has never been looked at gets its first size and environment revision."""
    if job.status.shape:
        return job
    status = replace(job.status, shape=spec_size(job), revision=max(job.status.revision, 1))
    return replace(job, status=status)


def follow_scaling(job: Job, world: World) -> tuple[Job, tuple[Event, ...]]:
    wanted, present = spec_size(job), job.status.shape
    if wanted == present or any(r.done for r in world.replicas if r.role in TRAINERS):
        return job, ()
    # Kubernetes' own gangs cannot grow: there the larger size is an attempt of its own.
    placed = all(r.pod is not None and r.pod.scheduled for r in world.growth)
    if not placed and scheduler_of(job, world.children) != NATIVE:
        return job, ()
    changes = [
        f"{role} {present.get(role, 0)} to {count}"
        for role, count in wanted.items()
        if present.get(role, 0) != count
    ]
    message = f"scaling {', '.join(changes)}; all replicas start again with the new environment"
    scaled = new_attempt_of_all(job, phase=Phase.SCALING)
    return scaled, (Event(type="Normal", reason="Scaling", message=message),)


def next_size(job: Job) -> Job:
    """The job as its growth will find it: pods made for the larger size carry its numbers."""
    status = replace(job.status, attempt=job.status.attempt + 1, revision=job.status.revision + 1)
    return replace(job, status=status)
