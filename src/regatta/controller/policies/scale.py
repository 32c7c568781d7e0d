"""Another number of replicas, or other templates: everybody starts again.

Nothing that runs is stopped before the larger size is known to fit, and nothing is followed when
it is too late (`observe.too_late`).
"""

from __future__ import annotations

from msgspec.structs import replace

from regatta.api.job import Job, Phase
from regatta.controller.observe import World, spec_size
from regatta.controller.plan import Event
from regatta.controller.policies.attempts import fingerprint, new_attempt_of_all
from regatta.controller.policies.gang import NATIVE, find_group, scheduler_of


def first_size(job: Job, world: World) -> Job:
    """Until an attempt has anything, its size and its templates are what the spec says."""
    group = find_group(job, world.children)
    begun = (
        any(r.pod is not None or r.done for r in world.replicas)
        or job.status.revision in world.children.environments
        or (group is not None and group.scheduler == NATIVE)  # it cannot be changed
    )
    if job.status.shape and begun:
        return job
    status = replace(
        job.status,
        shape=spec_size(job),
        revision=max(job.status.revision, 1),
        made_from=fingerprint(job.spec),
    )
    return replace(job, status=status)


def follow_templates(job: Job, world: World) -> tuple[Job, tuple[Event, ...]]:
    """Suspended, edited and resumed while nobody looked: the edit counts all the same."""
    status = job.status
    if status.observed_generation == job.metadata.generation or not status.made_from:
        return job, ()
    if status.made_from == fingerprint(job.spec) or world.late:
        return job, ()
    message = "the pod templates were edited; all replicas start again"
    edited = new_attempt_of_all(job, phase=Phase.RESTARTING)
    return edited, (Event(type="Normal", reason="Restarting", message=message),)


def follow_scaling(job: Job, world: World) -> tuple[Job, tuple[Event, ...]]:
    wanted, present = spec_size(job), job.status.shape
    if wanted == present or world.late:
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
