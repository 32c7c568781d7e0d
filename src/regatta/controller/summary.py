"""The status a person reads, from what was observed. Final phases are never summarised again, but
for the servers that run on after one."""

from __future__ import annotations

from collections import Counter

from msgspec.structs import replace

from regatta.api.job import (
    CONDITION_TYPES,
    Condition,
    Job,
    JobStatus,
    Mode,
    Phase,
    Ref,
    RoleStatus,
)
from regatta.controller.judge import Verdict
from regatta.controller.observe import Replica, World
from regatta.controller.plan import Instant
from regatta.controller.policies.attempts import with_roles
from regatta.controller.policies.removal import serves_on, unstick
from regatta.controller.policies.reports import with_all_named
from regatta.controller.policies.setting_up import why_not_set_up
from regatta.controller.world import PodPhase

#: Phases that last until every replica runs again, so that a person sees why they do not.
_STICKY = frozenset({Phase.RESTARTING, Phase.SCALING})


def summarise(job: Job, world: World, verdict: Verdict, now: Instant) -> JobStatus:
    phase = verdict.phase or phase_of(job, world)
    status = replace(
        job.status,
        phase=phase,
        mode=str(job.spec.mode),
        observed_generation=job.metadata.generation,
        reason=verdict.reason,
        message=verdict.message or _message(job, world, phase, now),
        **_role_statuses(job, world, phase),
    )
    if verdict.failure is not None:
        status = replace(status, failure=verdict.failure)
    status = _with_times(status, phase, world, now)
    status = _with_progress(status, world)
    return replace(status, conditions=_conditions(job, status, world, now))


def phase_of(job: Job, world: World) -> Phase:
    open_places = [replica for replica in world.replicas if not replica.done]
    if world.replicas and all(_runs(replica) for replica in open_places):
        return Phase.RUNNING
    if job.status.phase in _STICKY:
        return job.status.phase
    if all_placed(world):
        return Phase.STARTING
    return Phase.PENDING


def all_placed(world: World) -> bool:
    open_places = [replica for replica in world.replicas if not replica.done]
    return all(r.pod is not None and r.pod.scheduled for r in open_places)


def _runs(replica: Replica) -> bool:
    # An unknown pod is most often a node that missed a heartbeat: no reason to change the phase.
    # A tolerated failure of a task leaves the job running too.
    pod = replica.pod
    return pod is not None and pod.phase in (PodPhase.RUNNING, PodPhase.UNKNOWN, PodPhase.FAILED)


def what_serves_on(job: Job, world: World) -> JobStatus:
    """The status of a finished job, with as many servers as still run."""
    roles: dict[str, RoleStatus] = {}
    for role, memory in job.status.roles().items():
        running = sum(_serves(replica) for replica in world.of(role))
        ready = f"{running}/{memory.replicas}"
        known = running == memory.running
        roles[role] = memory if known else replace(memory, running=running, ready=ready)
    return with_roles(job, roles)


def _role_statuses(job: Job, world: World, phase: Phase) -> dict[str, object]:
    remembered = job.status.roles()
    roles: dict[str, RoleStatus] = {}
    for role, spec in job.spec.roles().items():
        replicas = world.of(role)
        counts = Counter(_state(replica) for replica in replicas)
        if phase.final:
            counts = _at_the_end(job, replicas, phase)
        memory = remembered.get(role, RoleStatus())
        roles[role] = replace(
            memory,
            pending=counts["pending"],
            starting=counts["starting"],
            running=counts["running"],
            failed=counts["failed"],
            succeeded=counts["succeeded"],
            unknown=counts["unknown"],
            ready=f"{counts['running']}/{len(replicas)}",
            replicas=len(replicas) or spec.replicas,
            refs=tuple(Ref(name=r.pod.name, uid=r.pod.uid) for r in replicas if r.pod is not None),
            done=tuple(replica.index for replica in replicas if replica.done),
        )
    if job.spec.mode is Mode.CUSTOM:
        return {"tasks": roles}
    return {role: roles.get(role) for role in ("ps", "worker", "heter")}


def _at_the_end(job: Job, replicas: tuple[Replica, ...], end: Phase) -> Counter[str]:
    """How each ended. What still runs counts only if it may: all others are ended by the same plan,
    whose status is the last that is written."""
    return Counter(
        succeeded=sum(replica.done for replica in replicas),
        failed=sum(replica.failed for replica in replicas),
        running=sum(map(_serves, replicas)) if serves_on(job, end) else 0,
    )


def _serves(replica: Replica) -> bool:
    pod = replica.pod
    return pod is not None and not (pod.phase.over or pod.stopping)


def _state(replica: Replica) -> str:
    if replica.done:
        return "succeeded"
    if replica.pod is None:
        return "pending"
    return str(replica.pod.phase).lower()


def _message(job: Job, world: World, phase: Phase, now: Instant) -> str:
    """Why it is not running, if it is not."""
    pods = [r.pod for r in (*world.replicas, *world.growth) if r.pod is not None]
    waiting = next((p.waiting for p in pods if p.waiting and not p.phase.over), "")
    held = why_not_set_up(job, pods, world.children, now)
    waiting = waiting or held or _in_the_way(world, now)
    if phase is Phase.RUNNING:
        return f"to be scaled: {waiting}" if world.growth and waiting else ""
    if phase is Phase.RESTARTING:
        return waiting or job.status.message
    if phase in (Phase.PENDING, Phase.SCALING):
        return waiting
    if phase is Phase.STARTING:
        addressed = sum(1 for pod in pods if pod.host is not None)
        if job.status.revision not in world.children.environments:
            return held or f"{addressed} of {len(world.replicas)} replicas have an address"
        return waiting
    return ""


def _in_the_way(world: World, now: Instant) -> str:
    """Whose pod keeps a name that a replica of this job needs."""
    for pod in world.foreign:
        return f"a pod that belongs to somebody else is named {pod.name}"
    needed = {replica.name for replica in (*world.replicas, *world.growth)}
    for ref in unstick((pod for pod in world.stale if pod.name in needed), now)[0]:
        return f"the former pod {ref.name} is being deleted and does not go; look at its finalizers"
    return ""


def _with_times(status: JobStatus, phase: Phase, world: World, now: Instant) -> JobStatus:
    if phase is Phase.SUSPENDED:
        return replace(status, start_time=None, started_awake=None)
    if status.start_time is None and world.replicas and all_placed(world):
        status = replace(status, start_time=now.wall, started_awake=now.awake)
    unheard = status.heartbeat_awake is None and world.children.hears_progress
    if phase is Phase.RUNNING and unheard:
        status = replace(status, heartbeat_awake=now.awake)
    if phase.final:
        status = replace(status, completion_time=now.wall, restart_at=None)
    return status


def _with_progress(status: JobStatus, world: World) -> JobStatus:
    known, seen = status.progress, world.children.progress
    if seen is not None and seen.at is not None and (known is None or known.at != seen.at):
        beat = world.children.heartbeat_awake
        heard = status.heartbeat_awake if beat is None else beat
        seen = with_all_named(seen, known)
        status, known = replace(status, progress=seen, heartbeat_awake=heard), seen
    if known is not None and status.phase is not Phase.RUNNING:  # then nobody gets any further
        return replace(status, progress=replace(known, eta_seconds=None))
    return status


def _conditions(job: Job, status: JobStatus, world: World, now: Instant) -> tuple[Condition, ...]:
    truth = {
        "Admitted": status.start_time is not None,
        "EnvironmentReady": status.revision in world.children.environments,
        "Suspended": status.phase is Phase.SUSPENDED,
        "Completed": status.phase is Phase.COMPLETED,
        "Failed": status.phase is Phase.FAILED,
    }
    known = {condition.type: condition for condition in status.conditions}
    conditions: list[Condition] = []
    for kind in CONDITION_TYPES:
        old, value = known.get(kind), "True" if truth[kind] else "False"
        if old is None and not truth[kind]:
            continue
        if old is not None and old.status == value:
            conditions.append(old)
            continue
        conditions.append(
            Condition(
                type=kind,
                status=value,
                reason=status.reason or str(status.phase),
                message=status.message,
                last_transition_time=now.wall,
                observed_generation=job.metadata.generation,
            )
        )
    return tuple(conditions)
