"""The one place that decides what a live job's situation is.

The order is the policy: a goal reached beats any failure (a server that dies while the job ends
does no harm), and what the user asked for beats what the replicas did.
"""

from __future__ import annotations

from enum import Enum, auto

import msgspec

from regatta.api.job import HUNG, WITHOUT_END, Failure, Job, Phase
from regatta.controller.labels import REPLACED_BY
from regatta.controller.observe import TRAINERS, World
from regatta.controller.plan import Instant
from regatta.controller.policies.completion import is_complete
from regatta.controller.policies.failure import Fault, find_fault, in_words, is_hopeless
from regatta.controller.policies.gang import missing_scheduler, waits_for_admission
from regatta.controller.policies.timers import until_deadline, until_hung

#: Seconds between looks at somebody else's object in our way; its removal may send us no event.
FOREIGN_LOOK_AGAIN = 30.0
#: Of an end that the job itself calls hopeless.
NOT_AGAIN = "runPolicy.noRetry says not to try this again"


class Kind(Enum):
    DONE = auto()  # a final phase is reached
    ABORT = auto()  # the user gave up; what runs is being stopped
    RESTART = auto()
    HOLD = auto()  # suspended, or the gang is not admitted yet
    GO = auto()


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    kind: Kind
    phase: Phase | None = None
    reason: str = ""
    message: str = ""
    fault: Fault | None = None
    look_again: float | None = None

    @property
    def failure(self) -> Failure | None:
        return self.fault.failure if self.fault else None


def judge(job: Job, world: World, now: Instant) -> Verdict:
    policy = job.spec.run_policy
    if is_complete(job, world):
        return Verdict(kind=Kind.DONE, phase=Phase.COMPLETED, reason="Completed")
    if policy.abort or job.status.phase is Phase.ABORTING:  # what was stopped stays stopped
        return _abort(job, world)
    if _overdue(until_deadline(job, now)):
        limit = policy.active_deadline_seconds
        return Verdict(
            kind=Kind.DONE,
            phase=Phase.FAILED,
            reason="DeadlineExceeded",
            message=f"ran longer than activeDeadlineSeconds ({limit} s)",
        )
    if policy.suspend:
        return Verdict(kind=Kind.HOLD, phase=Phase.SUSPENDED, reason="Suspended")
    if _overdue(until_hung(job, now, world.children)):
        return _restart_or_fail(job, _hang(job, world))
    fault = find_fault(job, world, now)
    if fault is not None and fault.settles_in is not None:
        return Verdict(kind=Kind.GO, look_again=fault.settles_in)
    if fault is not None:
        return _restart_or_fail(job, fault)
    theirs = {pod.name for pod in world.foreign}
    if any(replica.name in theirs for replica in world.replicas):
        return _blocked(world)
    if not world.children.admitted and not any(r.pod for r in world.replicas):
        return Verdict(
            kind=Kind.HOLD,
            phase=Phase.PENDING,
            reason="WaitingForPorts",
            message=world.children.not_admitted_for,
        )
    if missing := missing_scheduler(job, world.children):
        return _without_scheduler(missing)
    if waits_for_admission(job, world):
        return Verdict(
            kind=Kind.HOLD,
            phase=Phase.PENDING,
            reason="WaitingForAdmission",
            message="waits for Volcano to let the job's PodGroup into its queue",
        )
    # One that is in the way of growth alone stops nothing that runs.
    return Verdict(kind=Kind.GO, look_again=FOREIGN_LOOK_AGAIN if theirs else None)


def _overdue(seconds_left: float | None) -> bool:
    return seconds_left is not None and seconds_left <= 0


def _blocked(world: World) -> Verdict:
    names = ", ".join(sorted(pod.name for pod in world.foreign)[:3])
    return Verdict(
        kind=Kind.HOLD,
        phase=Phase.PENDING,
        reason="ForeignObject",
        message=f"pods that belong to somebody else have names this job needs: {names}; "
        "delete or rename them, or give the job another name",
        look_again=FOREIGN_LOOK_AGAIN,
    )


def _without_scheduler(name: str) -> Verdict:
    what = {
        "volcano": "the job wants Volcano, which this cluster does not have: install it, or remove "
        "schedulerName: volcano",
        "native": "--scheduling=native needs the API scheduling.k8s.io/v1alpha2, which this "
        "cluster does not serve",
    }[name]
    return Verdict(
        kind=Kind.HOLD,
        phase=Phase.PENDING,
        reason="NoGangScheduler",
        message=what,
        look_again=FOREIGN_LOOK_AGAIN,
    )


def _abort(job: Job, world: World) -> Verdict:
    if world.live:
        return Verdict(kind=Kind.ABORT, phase=Phase.ABORTING, reason="Aborting")
    by = job.metadata.annotations.get(REPLACED_BY)
    message = f"replaced by the run with the UID {by}" if by else "stopped on request"
    return Verdict(kind=Kind.DONE, phase=Phase.ABORTED, reason="Aborted", message=message)


def _restart_or_fail(job: Job, fault: Fault) -> Verdict:
    limit, used = job.spec.run_policy.backoff_limit, job.status.restarts
    words = in_words(fault.failure)
    hopeless = is_hopeless(job, fault.failure)
    if fault.free or ((limit == WITHOUT_END or used < limit) and not hopeless):
        return Verdict(kind=Kind.RESTART, reason="ReplicaFailed", message=words, fault=fault)
    if hopeless and limit:
        words += f"; {NOT_AGAIN}"
    elif limit:
        words += f" (attempt {used + 1} of {limit + 1})"
    reason = HUNG if fault.failure.reason == HUNG else "ReplicaFailed"
    return Verdict(kind=Kind.DONE, phase=Phase.FAILED, reason=reason, message=words, fault=fault)


def _hang(job: Job, world: World) -> Fault:
    limit = job.spec.run_policy.hang_timeout_seconds
    # Whose log may tell why. Nobody was heard, so nobody is to blame; servers never report.
    silent = min(world.replicas, key=lambda r: (not r.running, r.role not in TRAINERS))
    return Fault(
        failure=Failure(
            pod=silent.name,
            role=silent.role,
            index=silent.index,
            reason=HUNG,
            message=f"no replica reported progress for hangTimeoutSeconds ({limit} s)",
        ),
        replicas=tuple(replica for replica in world.replicas if not replica.done),
    )
