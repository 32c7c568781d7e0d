"""What a person may change about a job, and when: the same on every engine and through every door.

Each function answers the job as it is to be, or refuses with a sentence. Nothing else changes: an
engine writes what is answered. Whoever edits a PaddleJob with kubectl meets the API server's own
rules instead (`api.crd.cel_changes`), and the brain, which follows no change of size that is too
late (`observe.too_late`).
"""

from __future__ import annotations

import re
from datetime import datetime

from msgspec.structs import replace

from regatta.api.errors import JobIsLive, JobNotFound, NotPossible
from regatta.api.job import Job, Metadata, Mode, RoleSpec, RunPolicy
from regatta.controller.labels import REPLACED_BY
from regatta.controller.observe import too_late

#: As a run's begins.
_UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{1,4}|$)")


def stopped(job: Job, *, runs_on: bool = False) -> Job:
    """The job aborted. A finished one stays as it is, and what `runs_on` of it is to be ended."""
    _refuse_when_deleting(job)
    if job.finished:
        if not runs_on:
            raise NotPossible(f"{job.name} has ended ({_phase(job)}) and nothing of it is running")
        return job
    return _with_policy(job, abort=True)


def suspended(job: Job, suspend: bool) -> Job:
    """The job suspended, or resumed."""
    _refuse_when_deleting(job)
    if job.finished or job.spec.run_policy.abort:
        verb = "suspended" if suspend else "resumed"
        raise NotPossible(f"{job.name} cannot be {verb}: it is {_phase(job)}")
    if job.spec.run_policy.suspend is suspend:
        raise NotPossible(f"{job.name} is {'already' if suspend else 'not'} suspended")
    return _with_policy(job, suspend=suspend)


def scaled(job: Job, role: str, replicas: int) -> Job:
    """The job with another number of replicas; refused where that could not work."""
    _refuse_when_deleting(job)
    roles = job.spec.roles()
    if job.finished or job.spec.run_policy.abort:
        raise NotPossible(f"{job.name} cannot be scaled: it is {_phase(job)}")
    if role not in roles:
        raise no_such_role(job, role)
    if too_late(name for name, memory in job.status.roles().items() if memory.done):
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
    return _with_role(job, role, replace(spec, replicas=replicas))


def deleted(job: Job, at: datetime) -> Job:
    """Whatever it does; a job that is being deleted goes on being deleted."""
    if job.deleting:
        return job
    return replace(job, metadata=replace(job.metadata, deletion_timestamp=at))


def replaced(job: Job, *, even_live: bool, by: str = "") -> Job:
    """The job that has a name which another one is to have: a live one is aborted, if at all. `by`:
    the other's uid, to be told as the reason."""
    if job.finished:
        return job
    if not even_live:
        state = "is being deleted" if job.deleting else f"is {_phase(job)}"
        raise JobIsLive(
            f"a job named {job.name} {state}. Use `--replace` to end it and take its "
            f"place, `--name` for another name, or `regatta stop {job.name}` first."
        )
    if by and not job.spec.run_policy.abort:
        notes = {**job.metadata.annotations, REPLACED_BY: by}
        job = replace(job, metadata=replace(job.metadata, annotations=notes))
    return _with_policy(job, abort=True)


def no_such_job(namespace: str, name: str) -> JobNotFound:
    next_step = "`regatta get -A` lists all jobs."
    if _UID.match(name):
        next_step = f"A run is named by its UID with `--uid {name}`."
    return JobNotFound(f"there is no job named {name} in namespace {namespace}. {next_step}")


def no_job_but_runs(namespace: str, name: str) -> JobNotFound:
    where = "" if namespace == Metadata(name=name).namespace else f" -n {namespace}"
    return JobNotFound(
        f"there is no job named {name} in namespace {namespace} any more. `regatta history "
        f"{name}{where}` lists its runs that are on record."
    )


def no_such_run(uid: str, namespace: str | None) -> JobNotFound:
    where = "any namespace" if namespace is None else f"namespace {namespace}"
    return JobNotFound(
        f"there is no run with the UID {uid} in {where}. `regatta history -A` lists all runs."
    )


def only_its_record(uid: str, why: str) -> JobNotFound:
    return JobNotFound(
        f"of the run with the UID {uid} only the record is left: {why}. "
        f"`regatta describe --uid {uid}` shows it."
    )


def no_such_role(job: Job, role: str) -> NotPossible:
    roles = ", ".join(job.spec.roles())
    return NotPossible(f"{job.name} has no role {role!r}; its roles are {roles}")


def _phase(job: Job) -> str:
    return str(job.status.phase or "Pending")


def _refuse_when_deleting(job: Job) -> None:
    if job.deleting:
        raise NotPossible(f"{job.name} is being deleted")


def _with_policy(job: Job, **changes: bool) -> Job:
    policy: RunPolicy = replace(job.spec.run_policy, **changes)
    if policy == job.spec.run_policy:
        return job
    return _next_generation(replace(job, spec=replace(job.spec, run_policy=policy)))


def _with_role(job: Job, role: str, spec: RoleSpec) -> Job:
    if job.spec.mode is Mode.CUSTOM:
        tasks = tuple(spec if task.name == role else task for task in job.spec.tasks)
        changed = replace(job.spec, tasks=tasks)
    else:
        changed = replace(job.spec, **{role: spec})
        if changed.mode is Mode.SINGLE and spec.replicas > 1:
            changed = replace(changed, mode=Mode.COLLECTIVE)
    return _next_generation(replace(job, spec=changed))


def _next_generation(job: Job) -> Job:
    return replace(job, metadata=replace(job.metadata, generation=job.metadata.generation + 1))
