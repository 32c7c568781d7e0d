"""What of the runs that have ended is kept, and what goes: logs first, records later.

Only runs of which nothing runs any more are looked at. Ends are counted from, never submissions. An
end that lies in the future was told by a clock that has been set back since. A clock that went
on unwatched is doubted for a while: it may be wrong, and what is gone does not come back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec

from regatta.api.amounts import readable
from regatta.controller.plan import Instant

DAY = 86400.0
#: Seconds by which clocks are set back all the time. What ended later than that from now ended, in
#: truth, before all that has ended since: else each run would go as the oldest when it ends.
SKEW = 3600.0
#: Seconds between two looks while nothing ends, and runs only grow old.
SOONEST, LATEST = 1.0, 600.0


class Retention(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The bounds, each None where there is none. As they are, they keep a busy machine well under
    10 GB: a run's record is a few KiB."""

    #: Seconds after its end that a run is kept.
    age: float | None = 90 * DAY
    #: How many ended runs are kept.
    runs: int | None = 2000
    #: Bytes that the logs of all ended runs may take.
    size: int | None = 5 * 1024**3


#: Nothing goes. So it is where what somebody wrote about it cannot be understood: what is gone
#: does not come back.
UNBOUNDED = Retention(age=None, runs=None, size=None)


def in_words(bounds: Retention) -> str:
    """As a sentence goes on after "of runs that have ended,"."""
    age = "of any age" if bounds.age is None else f"of the last {days(bounds.age)}"
    runs = "all" if bounds.runs is None else f"the newest {bounds.runs}"
    size = "all" if bounds.size is None else f"the newest {readable(bounds.size)}"
    return f"{runs} {age} are kept, and {size} of their logs"


def days(seconds: float) -> str:
    """`90 days`, `12 hours`."""
    units = ((DAY, "day"), (3600.0, "hour"), (60.0, "minute"), (1.0, "second"))
    size, unit = next((u for u in units if seconds >= u[0]), units[-1])
    number = seconds / size
    return f"{number:.3g} {unit}{'' if number == 1 else 's'}"


class EndedRun(NamedTuple):
    uid: str
    ended_at: datetime
    #: What its logs take; 0 where they are gone.
    size: int


class EndedTry(NamedTuple):
    """A replica of a job that lives on: what came before its present try."""

    uid: str
    #: Whose try it was: `worker-0`.
    replica: str
    size: int


class Overdue(NamedTuple):
    """Uids, those that ended first first. Of a run whose record goes, the logs go with it."""

    too_old: list[str]
    too_many: list[str]
    logs: list[str]


def overdue(runs: Iterable[EndedRun], bounds: Retention, now: datetime) -> Overdue:
    """The least that has to go, oldest first. The run that ended last keeps its logs in any case:
    somebody may be reading them."""
    latest = now + timedelta(seconds=SKEW)
    newest = sorted(
        runs, key=lambda run: (run.ended_at <= latest, run.ended_at, run.uid), reverse=True
    )
    young = [run for run in newest if not _is_too_old(run, bounds, now)]
    kept = young[: bounds.runs]  # all of them, where there is no bound
    return Overdue(
        too_old=_oldest_first([run for run in newest if _is_too_old(run, bounds, now)]),
        too_many=_oldest_first(young[len(kept) :]),
        logs=_oldest_first(_too_large(kept, bounds.size)),
    )


def next_look(runs: Iterable[EndedRun], bounds: Retention, now: datetime) -> float:
    """Seconds until the next of them is too old: none sooner than many that end one after the other
    are worth, none later than a clock that is set is noticed. What is too old already, and could
    not be removed, is tried again then."""
    if bounds.age is None:
        return LATEST
    ages = [(now - run.ended_at).total_seconds() for run in runs]
    left = min((bounds.age - age for age in ages if age <= bounds.age), default=LATEST)
    return min(max(left, SOONEST), LATEST)


class ClockSeen(NamedTuple):
    """The clock at the last look, and the awake seconds from which ages by it are believed."""

    at: Instant
    believed_from: float = 0.0


def look_at_clock(last: ClockSeen | None, bounds: Retention, now: Instant) -> ClockSeen:
    """Nobody watched while the clock went on, or somebody set it: by a third of what a run may be
    old, and runs could go that are not. For as long again (a day at most) none does for its age,
    so that a clock can be set right, or set back."""
    if last is None or bounds.age is None:
        return ClockSeen(now)
    unwatched = (now.wall - last.at.wall).total_seconds() - (now.awake - last.at.awake)
    if unwatched <= max(bounds.age / 3, SKEW):
        return ClockSeen(now, last.believed_from)
    return ClockSeen(now, now.awake + min(bounds.age / 3, DAY))


def without_age(bounds: Retention) -> Retention:
    return msgspec.structs.replace(bounds, age=None)


def past_tries(tries: Sequence[EndedTry], bounds: Retention) -> list[str]:
    """Of a job that lives, the tries whose logs have to go, those that ended first first. The last
    of each replica stays: it says why there is another."""
    most = share_of_past_tries(bounds)
    if most is None:
        return []
    last = {ended.replica: ended.uid for ended in tries}
    total = sum(ended.size for ended in tries)
    over = []
    for ended in tries:
        if total <= most:
            break
        if ended.size and last[ended.replica] != ended.uid:
            over.append(ended.uid)
            total -= ended.size
    return over


def share_of_past_tries(bounds: Retention) -> int | None:
    """Bytes for each job that lives: it may be tried again a thousand times before it ends."""
    return None if bounds.size is None else bounds.size // 10


def _is_too_old(run: EndedRun, bounds: Retention, now: datetime) -> bool:
    return bounds.age is not None and (now - run.ended_at).total_seconds() > bounds.age


def _too_large(newest: list[EndedRun], size: int | None) -> list[EndedRun]:
    """Those whose logs no longer fit beside the logs of the runs that ended after them."""
    if size is None:
        return []
    total, over = 0, []
    for number, run in enumerate(newest):
        total += run.size
        if total > size and number and run.size:
            over.append(run)
    return over


def _oldest_first(newest: list[EndedRun]) -> list[str]:
    return [run.uid for run in reversed(newest)]
