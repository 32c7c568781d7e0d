"""Who failed first, why, and whether it counts.

One fault ends many replicas: a dead peer makes the others abort within a fraction of a second.
So one attempt counts one failure, and the one to blame is the earliest whose exit code is not
itself a typical consequence. Of those that ended close together, whose order no clock can tell, it
is not one whose last words say that a peer was lost. A restart is free only on the engine's own
evidence.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta

import msgspec

from regatta.api.job import HUNG, Failure, Job
from regatta.controller.observe import Replica, World
from regatta.controller.plan import Instant
from regatta.controller.policies.completion import tolerated
from regatta.controller.world import INIT_ERROR, Exit

#: How a replica ends when its peer is gone: abort, segmentation fault, SIGTERM, the launcher's 250.
CONSEQUENCES = frozenset({134, 139, 143, 250})

#: How gloo and NCCL end a program because another one is gone, whatever its exit code is then.
_PEER_IS_GONE = re.compile(r"gloo/transport/\w+/pair\.cc|remote process exited")
#: Most often a peer's end too, unless the program speaks to somebody else.
_CONNECTION_IS_GONE = re.compile(r"Connection (?:reset|closed) by peer")

#: How the last line begins of a replica that the kernel killed for memory, where its engine knows
#: more of it; the rest says which limit it was.
_KILLED_FOR_MEMORY = "killed for memory: "

#: Seconds in which the true cause may still be on its way behind a consequence, and in which the
#: times of two ends do not tell which came first: a cluster's have whole seconds.
SETTLING = 2.0

FREE_RESTARTS_AN_HOUR = 10


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt's failure, however many replicas died of it."""

    failure: Failure
    #: Not the program's doing, and within the hourly limit of such restarts.
    free: bool = False
    #: A consequence was seen and its cause may follow within this many seconds.
    settles_in: float | None = None
    #: Where it struck, for restart scopes.
    replicas: tuple[Replica, ...] = ()


def find_fault(job: Job, world: World, now: Instant) -> Fault | None:
    failed = [replica for replica in world.replicas if replica.failed]
    passed = {replica.name for replica in tolerated(job, failed)}
    failed = [replica for replica in failed if replica.name not in passed]
    disrupted = [r for r in world.replicas if r.vanished or (r.pod and r.pod.disruption)]
    if not failed and not disrupted:
        return None
    if disrupted:
        return Fault(
            failure=_disruption(disrupted[0]),
            free=len(recent(job.status.disruptions, now)) < FREE_RESTARTS_AN_HOUR,
            replicas=(*disrupted, *failed),  # one that is both begins anew once all the same
        )
    blamed = _blamed(failed)
    return Fault(
        failure=_failure(blamed), settles_in=_settling(blamed, world, now), replicas=tuple(failed)
    )


def recent(disruptions: tuple[datetime, ...], now: Instant) -> tuple[datetime, ...]:
    return tuple(at for at in disruptions if now.wall - at < timedelta(hours=1))


def _exit(replica: Replica) -> Exit:
    """How it ended, where the engine knows."""
    return (replica.pod and replica.pod.exit) or Exit(code=None)


def _blamed(failed: list[Replica]) -> Replica:
    first = min(failed, key=lambda replica: (_exit(replica).code in CONSEQUENCES, _ended(replica)))
    close = [r for r in failed if r is first or abs(_ended(r) - _ended(first)) <= SETTLING]
    return min(close, key=_suspicion)


def _suspicion(replica: Replica) -> tuple[bool, bool, float]:
    exit = _exit(replica)
    unconnected = _CONNECTION_IS_GONE.search(exit.message) is not None
    return (_is_consequence(exit), _names_a_peer(exit) or unconnected, _ended(replica))


def _is_consequence(exit: Exit) -> bool:
    return exit.code in CONSEQUENCES or _names_a_peer(exit)


def _names_a_peer(exit: Exit) -> bool:
    return _PEER_IS_GONE.search(exit.message) is not None


def _ended(replica: Replica) -> float:
    at = _exit(replica).finished_at
    return at.timestamp() if at else float("inf")


def _settling(blamed: Replica, world: World, now: Instant) -> float | None:
    """None when the cause is certain: a code of its own, or nobody left to explain it. And when
    the end lies in the future: a clock was set back, and would keep us waiting."""
    exit = _exit(blamed)
    if not _is_consequence(exit) or exit.finished_at is None:
        return None
    if not any(replica.running for replica in world.replicas):
        return None
    left = SETTLING - (now.wall - exit.finished_at).total_seconds()
    return min(left, SETTLING) if 0 < left <= 2 * SETTLING else None


def _failure(replica: Replica) -> Failure:
    exit = _exit(replica)
    return Failure(
        pod=replica.name,
        role=replica.role,
        index=replica.index,
        exit_code=exit.code,
        reason=exit.reason,
        message=exit.message,
        finished_at=exit.finished_at,
    )


def _disruption(replica: Replica) -> Failure:
    failure = _failure(replica)
    if replica.pod is None:
        message = "the pod was deleted while the job needed it"
        return msgspec.structs.replace(failure, reason="PodDeleted", message=message)
    return msgspec.structs.replace(failure, message=failure.message or replica.pod.disruption)


def is_hopeless(job: Job, failure: Failure) -> bool:
    """Whether the job says that another try would end in the same way."""
    never = job.spec.run_policy.no_retry
    return failure.exit_code in never.exit_codes or failure.reason in never.reasons


def in_words(failure: Failure) -> str:
    """One line for a status message or an event; the log lines are kept beside it."""
    if failure.reason == HUNG:
        return failure.message
    if failure.exit_code is None:
        why = failure.message.strip().splitlines()[-1:] or [failure.reason]
        reason = f" ({failure.reason})" if failure.reason else ""
        return f"{failure.pod} was lost{reason}: {why[0]}"
    how = f"exited with code {failure.exit_code}"
    if failure.exit_code > 128:
        how += f" (signal {failure.exit_code - 128})"
    if failure.reason == INIT_ERROR:
        how += f": {failure.message.partition(':')[0]}"
    elif failure.reason not in ("", "Error"):
        how += f", {failure.reason}{_for_memory(failure)}"
    return f"{failure.pod} {how}"


def _for_memory(failure: Failure) -> str:
    last = "".join(failure.message.splitlines()[-1:])
    known = failure.reason == "OOMKilled" and last.startswith(_KILLED_FOR_MEMORY)
    return f": {last.removeprefix(_KILLED_FOR_MEMORY)}" if known else ""
