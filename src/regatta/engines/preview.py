"""Dry runs, the same on every engine: the brain is asked about imaginary children that are placed
at once, until it has nothing more to create."""

from __future__ import annotations

from typing import Protocol

from msgspec.structs import replace

from regatta.api.job import Job
from regatta.controller.plan import Instant, NewPod, Plan
from regatta.controller.reconcile import reconcile
from regatta.controller.world import Children, Pod, PodPhase

#: A group, the pods and their environment take three looks; more would be a mistake of ours.
ROUNDS = 6


class Stage(Protocol):
    """What an engine would do with a plan, on paper."""

    def children(self, job: Job) -> Children: ...

    def take(self, job: Job, plan: Plan) -> None: ...


def rehearse(job: Job, stage: Stage, now: Instant) -> Job:
    """Plays the job until all of it stands on the stage; the job as it then is."""
    policy = replace(job.spec.run_policy, suspend=False, abort=False)
    job = replace(job, spec=replace(job.spec, run_policy=policy))
    for _ in range(ROUNDS):
        plan = reconcile(job, stage.children(job), now)
        if plan.status is not None:
            job = replace(job, status=plan.status)
        if not (plan.pods or plan.services or plan.environments or plan.pod_groups):
            break
        stage.take(job, plan)
    return job


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
