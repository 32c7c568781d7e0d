"""Who holds what of the machine, kept in memory so that an event costs one job, not all of them.

An entry is made anew from the store whenever its job was looked at; nothing here is the truth,
and all of it can be rebuilt.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec

from regatta.api.job import Job
from regatta.api.quantity import resources
from regatta.controller.observe import size_in_effect, size_wanted, spec_size
from regatta.engines.local.scheduling.scheduler import Gang, Holder, Need, gang_need, priority_of
from regatta.engines.local.store.records import JobRecord, PodRecord


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    uid: str
    namespace: str
    name: str
    priority: int
    queued: int
    admitted: int
    #: It is over, and holds only what it left running.
    ended: bool
    needs: dict[str, Need]
    #: Replicas per role it wants to run with; None when it wants to run nothing.
    wanted: dict[str, int] | None
    #: Replicas per role it was admitted with.
    shape: dict[str, int] | None
    #: Replicas per role that are bound and not over.
    live: dict[str, int]
    gpus: frozenset[str]
    waiting: str
    #: It has addresses and ports. Without, nothing of it can be made yet.
    reserved: bool

    @property
    def holds(self) -> Need:
        shape = self.shape or {}
        roles = shape.keys() | self.live.keys()
        counts = {role: max(shape.get(role, 0), self.live.get(role, 0)) for role in roles}
        return gang_need(self.needs, counts)

    @property
    def waits(self) -> bool:
        """It wants more than it was admitted with."""
        return self.wanted is not None and any(
            count > (self.shape or {}).get(role, 0) for role, count in self.wanted.items()
        )

    def gang(self) -> Gang:
        wanted = self.wanted or {}
        return Gang(
            uid=self.uid,
            namespace=self.namespace,
            name=self.name,
            need=gang_need(self.needs, wanted),
            priority=self.priority,
            queued=self.queued,
        )

    def holder(self) -> Holder:
        return Holder(
            uid=self.uid,
            namespace=self.namespace,
            holds=self.holds,
            priority=self.priority,
            queued=self.queued,
            admitted=self.admitted,
            ended=self.name if self.ended else "",
        )


class Ledger:
    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}

    def __iter__(self) -> Iterator[Entry]:
        return iter(tuple(self._entries.values()))

    def get(self, uid: str) -> Entry | None:
        return self._entries.get(uid)

    def clear(self) -> None:
        self._entries.clear()

    def forget(self, uid: str) -> None:
        self._entries.pop(uid, None)

    def note(self, record: JobRecord, pods: Iterable[PodRecord], reserved: bool = True) -> Entry:
        entry = entry_of(record, pods, reserved)
        if entry.wanted is None and not entry.live:
            self.forget(record.uid)  # a settled job weighs nothing
        else:
            self._entries[record.uid] = entry
        return entry

    def names_still_ending(self) -> frozenset[tuple[str, str]]:
        """Names with two jobs here: the present one, and one it replaced that still runs."""
        names = Counter((entry.namespace, entry.name) for entry in self)
        return frozenset(name for name, jobs in names.items() if jobs > 1)

    def held(self) -> Need:
        total = Need()
        for entry in self:
            total = total + entry.holds
        return total

    def gpus_in_use(self) -> frozenset[str]:
        return frozenset(gpu for entry in self for gpu in entry.gpus)


def entry_of(record: JobRecord, pods: Iterable[PodRecord], reserved: bool = True) -> Entry:
    job = record.job
    bound = [pod for pod in pods if pod.bound and not pod.over]
    live: dict[str, int] = {}
    for pod in bound:
        live[pod.role] = live.get(pod.role, 0) + 1
    policy = job.spec.scheduling_policy
    return Entry(
        uid=job.uid,
        namespace=job.namespace,
        name=job.name,
        priority=priority_of(policy.priority_class if policy else ""),
        queued=record.in_line_since,
        admitted=record.admitted or 0,
        ended=job.finished,
        needs=needs_of(job),
        wanted=size_wanted(job),
        shape=record.shape,
        live=live,
        gpus=frozenset(gpu for pod in bound for gpu in pod.gpus),
        waiting=record.waiting,
        reserved=reserved,
    )


def needs_of(job: Job) -> dict[str, Need]:
    """What one replica of each role asks for. One that asks for nothing counts as none."""
    return {name: need_of(role.template) for name, role in job.spec.roles().items()}


def need_of(template: dict[str, object]) -> Need:
    asked = resources(template)
    return Need(round(asked.cpu * 1000), asked.memory, asked.gpus, 1)


def whole_need(job: Job) -> Need:
    return gang_need(needs_of(job), spec_size(job))


def places_needed(job: Job) -> int:
    """Addresses and port blocks: for the size it has and the one it grows to."""
    return max(sum(size_in_effect(job).values()), sum(spec_size(job).values()))
