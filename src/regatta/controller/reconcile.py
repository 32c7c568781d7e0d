"""The brain's table of contents: what a job should do next. Every line is a policy."""

from __future__ import annotations

from msgspec.structs import replace

from regatta.api.job import Job, JobStatus
from regatta.controller.judge import Kind, judge
from regatta.controller.observe import World, observe
from regatta.controller.plan import Instant, Plan
from regatta.controller.policies.advance import advance
from regatta.controller.policies.finish import abort, finish, let_go, retire
from regatta.controller.policies.hold import hold
from regatta.controller.policies.removal import unstick
from regatta.controller.policies.reports import tell_of_no_numbers
from regatta.controller.policies.restart import restart
from regatta.controller.policies.timers import soonest, until_deadline, until_hung
from regatta.controller.policies.wrong_spec import goes_on, refuse, revived, tell
from regatta.controller.world import Children


def reconcile(job: Job, children: Children, now: Instant, problem: str = "") -> Plan:
    """What this job should do next. Knows nothing but its arguments.

    `problem`: what is wrong with the spec that somebody wrote; the job's own is then the one that
    holds instead (`spec_in_force`).
    """
    stored, job = job.status, revived(job)  # what was said of a wrong spec is said anew
    world = observe(job, children)  # children by role, attempt and state, counted once
    if job.deleting:
        return _unstuck(_settled(stored, let_go(job, world)), world, now)
    if problem and not goes_on(job, world):
        return _settled(stored, refuse(job, world, stored, problem, now))  # until it is right
    if job.finished:
        # clean-pod policy, time to live
        return _unstuck(_settled(stored, retire(job, world, now)), world, now)
    verdict = judge(job, world, now)  # completion, abort, deadline, suspension, hang, failure
    act = {
        Kind.DONE: finish,  # final phase, reason, what to stop
        Kind.ABORT: abort,  # stop everything, then the final phase
        Kind.RESTART: restart,  # scope, attempt, back-off
        Kind.HOLD: hold,  # suspended, blocked, or the gang is not admitted yet
        Kind.GO: advance,  # missing pods and services, environment, scale
    }[verdict.kind]
    plan = tell(act(job, world, verdict, now), stored, problem)  # beside which spec it does so
    plan = tell_of_no_numbers(plan, stored)  # in reports of progress
    return _unstuck(_with_timers(job, _settled(stored, plan), children, now), world, now)


def _settled(stored: JobStatus, plan: Plan) -> Plan:
    """Nothing is written that has not changed."""
    return replace(plan, status=None) if plan.status == stored else plan


def _unstuck(plan: Plan, world: World, now: Instant) -> Plan:
    """A pod on a lost node keeps its name for ever unless it is removed without the node."""
    stuck, look_again = unstick(world.stale, now)
    delete = plan.delete + stuck
    return replace(plan, delete=delete, look_again=soonest(plan.look_again, look_again))


def _with_timers(job: Job, plan: Plan, children: Children, now: Instant) -> Plan:
    after = replace(job, status=plan.status or job.status)
    if after.finished:
        return plan
    deadline = until_deadline(after, now)
    hung = until_hung(after, now, children)
    return replace(plan, look_again=soonest(plan.look_again, deadline, hung))
