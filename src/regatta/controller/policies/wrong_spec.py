"""A job whose spec, as somebody wrote it, is wrong: what it does meanwhile, and what it says.

One that has not begun is Failed until its spec is right, and then begins. One that has begun goes
on with its last right spec, or, where nobody remembers that, with as much of the wrong one as its
pods are known to be made of; where that is nothing it is left as it is. Suspending and aborting
work all the same. Each problem is told once, and it is always that of the spec as it stands.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from regatta.api.job import Condition, Job, JobSpec, JobStatus, Mode, Phase, RoleSpec, RunPolicy
from regatta.api.problems import Problem
from regatta.api.source.paths import within
from regatta.controller.observe import World
from regatta.controller.plan import Event, Instant, Plan
from regatta.controller.policies.attempts import fingerprint

INVALID_SPEC = "InvalidSpec"
#: Of what is wrong with a spec, in a status and in an event.
LONGEST_MESSAGE = 1024
#: For a job that has nothing to go on with: no roles, so no pods.
NO_SPEC = JobSpec(mode=Mode.CUSTOM)


class WrongSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A spec as somebody wrote it, and what is wrong with it."""

    problems: tuple[Problem, ...]
    #: What it says, where all of it can be read; and its run policy, where that can be.
    spec: JobSpec | None = None
    run_policy: RunPolicy | None = None

    @property
    def problem(self) -> str:
        return "\n".join(map(str, self.problems))[:LONGEST_MESSAGE]


# Before the children are known: which spec holds


def was_found_right(status: JobStatus, generation: int) -> bool:
    """Whether the spec of this generation was judged by whoever wrote the status.

    So it is judged once, and a job that runs is not judged anew by an upgrade's other rules.
    """
    ours = bool(status.conditions)  # the former operator had none, and judged nothing
    seen = status.observed_generation == generation
    return ours and seen and not status.spec_problem and status.reason != INVALID_SPEC


def spec_in_force(status: JobStatus, wrong: WrongSpec, last_right: JobSpec | None) -> JobSpec:
    """What the job goes on with, if it has begun. `last_right`: the last spec without a problem."""
    spec = last_right or _as_it_runs(status, wrong.spec)
    if spec is None:
        return NO_SPEC
    policy = last_right.run_policy if last_right else RunPolicy()
    return replace(spec, run_policy=_asked_for(wrong, policy))


def _as_it_runs(status: JobStatus, spec: JobSpec | None) -> JobSpec | None:
    """What is written, if pods made of it are like those that there are, and as many of them."""
    if spec is None or fingerprint(spec) != status.made_from:
        return None
    roles = {
        name: replace(role, replicas=status.shape.get(name, role.replicas))
        for name, role in spec.roles().items()
    }
    mode = next((mode for mode in Mode if mode == status.mode), spec.mode)
    return _with_roles(replace(spec, mode=mode), roles)


def _with_roles(spec: JobSpec, roles: dict[str, RoleSpec]) -> JobSpec:
    if spec.tasks:
        return replace(spec, tasks=tuple(roles.values()))
    return replace(spec, **roles)


def _asked_for(wrong: WrongSpec, before: RunPolicy) -> RunPolicy:
    """A person must be able to stop a job however wrong its spec is. The rest of a run policy
    counts unless it is what is wrong: a deadline of -1 would be over at once."""
    asked = wrong.run_policy
    if asked is None:
        return before
    if any(within(problem.path, "spec.runPolicy") for problem in wrong.problems):
        return replace(before, suspend=asked.suspend, abort=asked.abort)
    return asked


# What the job does, and what it says


def revived(job: Job) -> Job:
    """The job without what was said of a spec: it is said anew, or no more.

    One that was refused has not ended by that: it never ran, and another spec may be right.
    """
    status = job.status
    if status.reason != INVALID_SPEC:
        return job
    if status.phase is Phase.FAILED:
        kept = tuple(c for c in status.conditions if c.type != "Failed")
        status = replace(status, phase=None, completion_time=None, conditions=kept)
    return replace(job, status=replace(status, reason="", message=""))


def goes_on(job: Job, world: World) -> bool:
    """There is a spec to go on with, and something that has begun."""
    return bool(job.spec.roles()) and _has_begun(job, world)


def refuse(job: Job, world: World, stored: JobStatus, problem: str, now: Instant) -> Plan:
    """Nothing is touched, whatever there is. `stored`: what the job said before this look."""
    if job.finished:
        return Plan()
    if _has_begun(job, world):
        status = replace(job.status, spec_problem=problem)
    else:
        failed = _failed(job, stored, problem, now)
        status = replace(job.status, phase=Phase.FAILED, conditions=(failed,))
    generation = job.metadata.generation
    status = replace(status, reason=INVALID_SPEC, message=problem, observed_generation=generation)
    return Plan(status=status, events=_news(stored, problem))


def tell(plan: Plan, stored: JobStatus, problem: str) -> Plan:
    """Say that a job goes on as it was, where it has nothing more important to say; or no more."""
    assert plan.status is not None  # whatever is done, something is said
    status = replace(plan.status, spec_problem=problem)
    if problem and not status.reason:
        status = replace(status, reason=INVALID_SPEC, message=problem)
    return replace(plan, status=status, events=(*plan.events, *_news(stored, problem)))


def _has_begun(job: Job, world: World) -> bool:
    """Its first status may have to wait; its pods show it as well."""
    return job.status.phase is not None or bool(world.own)


def _failed(job: Job, stored: JobStatus, problem: str, now: Instant) -> Condition:
    already = next((c for c in stored.conditions if c.type == "Failed"), None)
    since = already.last_transition_time if already and already.status == "True" else None
    return Condition(
        type="Failed",
        status="True",
        reason=INVALID_SPEC,
        message=problem,
        last_transition_time=since or now.wall,
        observed_generation=job.metadata.generation,
    )


def _news(stored: JobStatus, problem: str) -> tuple[Event, ...]:
    refused = stored.message if stored.reason == INVALID_SPEC else ""
    if not problem or problem in (stored.spec_problem, refused):
        return ()
    return (Event(type="Warning", reason=INVALID_SPEC, message=problem),)
