"""What a person may change about a job, and when: the same on every engine.

Pure functions. Each answers the changed job, or refuses with a sentence (`NotPossible`).
"""

from __future__ import annotations

from msgspec.structs import replace

from regatta.api.errors import JobIsLive, JobNotFound, NotPossible
from regatta.api.job import Job, Mode, RoleSpec
from regatta.controller.observe import TRAINERS


def phase_of(job: Job) -> str:
    return str(job.status.phase or "Pending")


def state_of(job: Job) -> str:
    """Reads after the job's name: `is Running`."""
    return f"is {phase_of(job)}"


def no_such_job(namespace: str, name: str) -> JobNotFound:
    return JobNotFound(
        f"there is no job named {name} in namespace {namespace}. `regatta get -A` lists all jobs."
    )


def name_is_taken(old: Job) -> JobIsLive:
    state = "is being deleted" if old.deleting else state_of(old)
    return JobIsLive(
        f"a job named {old.name} {state}. Use `--replace` to end it and take its "
        f"place, `--name` for another name, or `regatta stop {old.name}` first."
    )


def nothing_to_stop(job: Job) -> NotPossible:
    return NotPossible(f"{job.name} has ended ({phase_of(job)}) and nothing of it is running")


def refuse_when_deleting(job: Job) -> None:
    if job.deleting:
        raise NotPossible(f"{job.name} is being deleted")


def suspended(job: Job, suspend: bool) -> Job:
    if job.finished or job.spec.run_policy.abort:
        verb = "suspended" if suspend else "resumed"
        raise NotPossible(f"{job.name} cannot be {verb}: it {state_of(job)}")
    if job.spec.run_policy.suspend is suspend:
        raise NotPossible(f"{job.name} is {'already' if suspend else 'not'} suspended")
    policy = replace(job.spec.run_policy, suspend=suspend)
    return next_generation(replace(job, spec=replace(job.spec, run_policy=policy)))


def scaled(job: Job, role: str, replicas: int) -> Job:
    """The job with another number of replicas; refused where that could not work."""
    roles = job.spec.roles()
    if job.finished or job.spec.run_policy.abort:
        raise NotPossible(f"{job.name} cannot be scaled: it {state_of(job)}")
    if role not in roles:
        raise NotPossible(f"{job.name} has no role {role!r}; its roles are {', '.join(roles)}")
    if any(job.status.roles()[r].done for r in TRAINERS if r in job.status.roles()):
        raise NotPossible(
            f"{job.name} cannot be scaled any more: a trainer has already succeeded, and its share "
            "of the work would be done twice"
        )
    spec = roles[role]
    low, high = 1, None
    if job.spec.elastic is not None:
        low, high = spec.requests or 1, spec.limits
    if replicas < low or (high is not None and replicas > high):
        bounds = f"at least {low}" if high is None else f"from {low} to {high}"
        raise NotPossible(f"{role} may have {bounds} replicas, not {replicas}")
    return _with_replicas(job, role, replace(spec, replicas=replicas))


def next_generation(job: Job) -> Job:
    return replace(job, metadata=replace(job.metadata, generation=job.metadata.generation + 1))


def _with_replicas(job: Job, role: str, spec: RoleSpec) -> Job:
    if job.spec.mode is Mode.CUSTOM:
        tasks = tuple(spec if task.name == role else task for task in job.spec.tasks)
        changed = replace(job.spec, tasks=tasks)
    else:
        changed = replace(job.spec, **{role: spec})
        if changed.mode is Mode.SINGLE and spec.replicas > 1:
            changed = replace(changed, mode=Mode.COLLECTIVE)
    return next_generation(replace(job, spec=changed))
