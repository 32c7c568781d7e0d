"""Nothing new starts: the job is suspended, not admitted by a gang scheduler, or blocked."""

from __future__ import annotations

from regatta.api.job import Job, Phase
from regatta.controller.judge import Verdict
from regatta.controller.observe import World, observe
from regatta.controller.plan import Event, Instant, Plan
from regatta.controller.policies.attempts import new_attempt_of_all
from regatta.controller.policies.gang import changed_groups, new_groups, outlived
from regatta.controller.policies.removal import remove
from regatta.controller.policies.scale import first_size
from regatta.controller.summary import summarise


def hold(job: Job, world: World, verdict: Verdict, now: Instant) -> Plan:
    if verdict.phase is Phase.SUSPENDED:
        return _suspend(job, world, verdict, now)
    job = first_size(job, world)
    world = observe(job, world.children)
    fresh = job.status.reason != verdict.reason
    return Plan(
        status=summarise(job, world, verdict, now),
        delete=remove(world.stale),
        pod_groups=new_groups(job, world),
        regroup=changed_groups(job, world),
        events=_events(verdict) if fresh and verdict.message else (),
        look_again=verdict.look_again,
    )


def _suspend(job: Job, world: World, verdict: Verdict, now: Instant) -> Plan:
    entering = job.status.phase is not Phase.SUSPENDED
    if entering and job.status.phase is not None:
        # Resuming is then nothing but going on: the pods it will ask for are another attempt's,
        # and wait for an environment that knows their addresses.
        job = new_attempt_of_all(job)
    job = first_size(job, observe(job, world.children))
    world = observe(job, world.children)
    return Plan(
        status=summarise(job, world, verdict, now),
        delete=remove(world.stale) + outlived(job, world.children, ended=True),
        events=(Event(type="Normal", reason="Suspended", message=_suspended(world)),)
        if entering
        else (),
    )


def _suspended(world: World) -> str:
    """What was asked to go belongs to a former attempt by now."""
    return "suspended; its pods are removed" if world.stale else "suspended before it had any pods"


def _events(verdict: Verdict) -> tuple[Event, ...]:
    return (Event(type="Warning", reason=verdict.reason, message=verdict.message),)
