"""The way to a final phase, and what happens to children on it and after it."""

from __future__ import annotations

from msgspec.structs import replace

from regatta.api.job import Job, Phase
from regatta.controller.judge import Verdict
from regatta.controller.observe import World
from regatta.controller.plan import ChildRef, Event, Instant, Plan
from regatta.controller.policies.gang import outlived
from regatta.controller.policies.removal import cleans, halt, remove, serves_on
from regatta.controller.policies.timers import until_expired
from regatta.controller.summary import summarise, what_serves_on

#: Kubernetes' own finalizer for a deletion that leaves the children behind.
ORPHAN = "orphan"


def finish(job: Job, world: World, verdict: Verdict, now: Instant) -> Plan:
    """Write the final phase; its children are dealt with in the same plan, by `retire`."""
    status = summarise(job, world, verdict, now)
    plan = retire(replace(job, status=status), world, now)
    event = _event(status.phase, verdict, tasks=bool(job.spec.tasks))
    return replace(plan, status=status, events=(event,))


def abort(job: Job, world: World, verdict: Verdict, now: Instant) -> Plan:
    stop, unplaced = halt(world.own)
    entering = job.status.phase is not Phase.ABORTING
    return Plan(
        status=summarise(job, world, verdict, now),
        stop=stop,
        delete=unplaced,
        events=(Event(type="Normal", reason="Aborting", message="stopping all replicas"),)
        if entering
        else (),
    )


def retire(job: Job, world: World, now: Instant) -> Plan:
    """Clean-pod policy and time to live of a finished job. Of its status only how many servers
    still run is ever written again."""
    phase = job.status.phase
    assert phase is not None
    left = until_expired(job, now)
    if left is not None and left <= 0:
        return Plan(delete_job=True)
    groups = outlived(job, world.children, ended=True)
    if cleans(job, phase):
        delete = remove(world.own) + _services(world) + groups
        return Plan(delete=delete, look_again=left)
    if serves_on(job, phase):
        # Only pods that no longer belong to the job go.
        return Plan(
            status=what_serves_on(job, world),
            delete=remove(world.stale) + groups,
            look_again=left,
        )
    stop, unplaced = halt(world.own)
    return Plan(stop=stop, delete=unplaced + groups, look_again=left)


def let_go(job: Job, world: World) -> Plan:
    """The job is being deleted: nothing is created or judged any more."""
    status = job.status
    if not job.finished:
        status = replace(status, phase=Phase.TERMINATING, reason="Deleted", message="")
    # `--cascade=orphan`: whoever deletes the job wants its pods to run on.
    orphaned = ORPHAN in job.metadata.finalizers
    return Plan(status=status, delete=() if orphaned else remove(world.own))


def _services(world: World) -> tuple[ChildRef, ...]:
    return tuple(
        ChildRef(kind="Service", name=name) for name in sorted(world.children.services or ())
    )


def _event(phase: Phase | None, verdict: Verdict, *, tasks: bool) -> Event:
    if phase is Phase.FAILED:
        return Event(type="Warning", reason=verdict.reason, message=verdict.message)
    reached = "the tasks have reached their goal" if tasks else "all trainers succeeded"
    message = verdict.message or reached
    return Event(type="Normal", reason=verdict.reason, message=message)
