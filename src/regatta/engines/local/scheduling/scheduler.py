"""Which waiting gangs start now, and why the others wait. Pure: values in, values out.

A gang is a whole job: all of its replicas are admitted together or none is, so two gangs can
never hold half of the machine each. The queue is by priority, then by time of submission; a job
that runs and wants to grow stands where it asked to.

A later gang may pass the head of the queue only when the head, everything that passed it, and the
newcomer would fit the whole machine together: whatever passes can then never be what the head
waits for, although nobody knows how long a job will run. Of one that grows the whole counts: it
gives nothing back before it ends.

Reasons name other jobs of the same namespace alone: what another namespace has may be nobody's to
know who reads them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

#: Words people use for `schedulingPolicy.priorityClass`; a number is taken as it stands.
PRIORITIES = {"high": 100, "normal": 0, "low": -100}


class Need(msgspec.Struct, frozen=True):
    """Resources as one vector: what a gang asks for, holds, or a machine has."""

    millicores: int = 0
    memory: int = 0
    gpus: int = 0
    pods: int = 0

    def __add__(self, other: Need) -> Need:
        return Need(
            self.millicores + other.millicores,
            self.memory + other.memory,
            self.gpus + other.gpus,
            self.pods + other.pods,
        )

    def __sub__(self, other: Need) -> Need:
        return self + other * -1

    def __mul__(self, times: int) -> Need:
        return Need(
            self.millicores * times, self.memory * times, self.gpus * times, self.pods * times
        )

    def fits(self, room: Need) -> bool:
        """Nothing is short. Asking for none of a resource fits even where it is overdrawn."""
        return not short_of(self, room)


NOTHING = Need()


class Gang(msgspec.Struct, frozen=True, kw_only=True):
    """A job that wants to start, or to grow."""

    uid: str
    namespace: str = ""
    name: str
    #: All that it would hold once admitted.
    need: Need
    priority: int = 0
    #: Its place in the one rising sequence of submissions, wishes to grow, and admissions.
    queued: int = 0

    @property
    def order(self) -> tuple[int, int]:
        return (-self.priority, self.queued)


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """A job that holds resources now: admitted, restarting, or with servers that run on."""

    uid: str
    namespace: str = ""
    holds: Need
    priority: int = 0
    queued: int = 0
    #: When it was admitted, in the same sequence.
    admitted: int = 0
    #: Its name, if it is over and has left something running.
    ended: str = ""

    @property
    def order(self) -> tuple[int, int]:
        return (-self.priority, self.queued)


class Decision(msgspec.Struct, frozen=True):
    admit: tuple[str, ...]
    #: For each gang that waits, by uid: what is short and its place in the queue.
    waiting: dict[str, str]


def decide(capacity: Need, holders: Iterable[Holder], queue: Iterable[Gang]) -> Decision:
    """Walk the queue in order; admit what fits, and let nothing pass that could starve the head.

    A gang that already holds something (it grows, or its old processes are still ending) is
    counted once: admission raises what it holds to its need.
    """
    held = {holder.uid: holder for holder in holders}
    free = capacity - _sum(holder.holds for holder in held.values())
    admitted: list[str] = []
    waiting: dict[str, str] = {}
    head: Gang | None = None
    passed: dict[str, Need] = {}
    beside_head = NOTHING  # the head and everything that passed it
    line = sorted(queue, key=lambda gang: gang.order)
    place = 0
    for gang in line:
        mine = held[gang.uid].holds if gang.uid in held else NOTHING
        more = growth(gang.need, mine)
        fits = more.fits(free)
        with_it = beside_head - passed.get(gang.uid, NOTHING) + gang.need
        if fits and (head is None or with_it.fits(capacity)):
            admitted.append(gang.uid)
            free = free - more
            if head is not None:
                beside_head = with_it
            continue
        place += 1
        if head is None:
            head = gang
            passed = {h.uid: h.holds for h in held.values() if _passed(h, gang)}
            beside_head = gang.need + _sum(passed.values())
        if fits:
            waiting[gang.uid] = _held_back(gang, head, place)
        else:
            waiting[gang.uid] = _explain(gang, more, free, capacity, place, held.values())
    return Decision(tuple(admitted), waiting)


def never_fits(capacity: Need, need: Need) -> str | None:
    """Why the whole machine, empty, would still be too small; None when it is not."""
    short = short_of(need, capacity)
    if not short:
        return None
    return "; ".join(
        f"it needs {_amount(name, getattr(need, name))}, "
        f"this machine has {_amount(name, getattr(capacity, name))}"
        for name in short
    )


def priority_of(priority_class: str) -> int:
    """A number as it stands, `high`, `normal` or `low`; any other name is a cluster's, so 0."""
    word = priority_class.strip().lower()
    try:
        return int(word)
    except ValueError:
        return PRIORITIES.get(word, 0)


def short_of(need: Need, room: Need) -> tuple[str, ...]:
    return tuple(
        name
        for name in Need.__struct_fields__
        if getattr(need, name) > 0 and getattr(need, name) > getattr(room, name)
    )


def growth(need: Need, holds: Need) -> Need:
    """What admission adds, per resource; never negative."""
    return Need(*(max(n - h, 0) for n, h in zip(_values(need), _values(holds), strict=True)))


def _values(need: Need) -> Sequence[int]:
    return (need.millicores, need.memory, need.gpus, need.pods)


def _sum(needs: Iterable[Need]) -> Need:
    total = NOTHING
    for need in needs:
        total = total + need
    return total


def _passed(holder: Holder, head: Gang) -> bool:
    """It stands behind the head in the queue and was admitted while the head waited."""
    return holder.order > head.order and holder.admitted > head.queued


def _held_back(gang: Gang, head: Gang, place: int) -> str:
    ahead = head.name if head.namespace == gang.namespace else "a job of another namespace"
    return f"held back so that {ahead}, which is ahead of it, can start; {_in_line(place)}"


def _explain(
    gang: Gang, more: Need, free: Need, capacity: Need, place: int, holders: Iterable[Holder]
) -> str:
    ended = [holder for holder in holders if holder.ended]
    parts = []
    for name in short_of(more, free):
        parts.append(
            f"needs {_amount(name, getattr(more, name))}, "
            f"{_free(name, getattr(free, name), getattr(capacity, name))}"
        )
        if left := [holder for holder in ended if getattr(holder.holds, name)]:
            parts[-1] += f", {_still_held(name, left, gang.namespace)}"
    return "; ".join([*parts, _in_line(place)])


def _still_held(name: str, holders: list[Holder], namespace: str) -> str:
    """What a person could free at once, and from whom."""
    amount = sum(getattr(holder.holds, name) for holder in holders)
    here = sorted(holder.ended for holder in holders if holder.namespace == namespace)
    named = [*here[:3], *(["..."] if len(here) > 3 else [])]
    if len(here) < len(holders):
        named.append("and in another namespace" if here else "in another namespace")
    who = ", ".join(named)
    return f"{_number(name, amount)} held by what finished jobs left running ({who})"


def _in_line(place: int) -> str:
    return "next in the queue" if place == 1 else f"{_ordinal(place)} in the queue"


def _free(name: str, free: int, of: int) -> str:
    return f"{_number(name, max(free, 0))} of {_number(name, of)} free"


def _amount(name: str, value: int) -> str:
    number = _number(name, value)
    one = number == "1"
    words = {
        "millicores": "CPU" if one else "CPUs",
        "memory": "memory",
        "gpus": "GPU" if one else "GPUs",
        "pods": "replica slot" if one else "replica slots",
    }
    return f"{number} {words[name]}" if name != "memory" else f"{number} of memory"


def _number(name: str, value: int) -> str:
    if name == "millicores":
        return f"{value / 1000:g}"
    if name == "memory":
        return _bytes(value)
    return str(value)


def _bytes(value: int) -> str:
    for unit, size in (("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if value >= size:
            return f"{value / size:.4g} {unit}"
    return f"{value} B"


def _ordinal(place: int) -> str:
    ending = "th" if 10 <= place % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(place % 10, "th")
    return f"{place}{ending}"


def gang_need(needs: Mapping[str, Need], counts: Mapping[str, int]) -> Need:
    """The whole gang's need: so many replicas of each role, each of which takes a pod slot."""
    total = NOTHING
    for role, count in counts.items():
        total = total + needs.get(role, Need(pods=1)) * count
    return total
