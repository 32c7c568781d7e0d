"""What an engine has told and is not written yet: of each job the last word, however many came.

A burst of changes is one write. What could not be written goes back, unless something newer has
come meanwhile. Knows neither engine nor database.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from regatta.api.job import Job
from regatta.engines.base import Gone
from regatta.server.records.recording.event_writes import Gap
from regatta.server.records.recording.observation_writes import Remembered
from regatta.server.records.recording.observations import fingerprint

#: Seconds until a job that is over, and whose replicas are not, is looked at again: first, longest.
SOON, LATE = 0.5, 60.0


class Whereabouts(msgspec.Struct, frozen=True):
    """How a job is asked for, whoever has its name now."""

    uid: str
    namespace: str
    name: str


class Backlog:
    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        #: Told, and to be written.
        self._told: dict[str, Job] = {}
        #: To be asked for: gone from the watch, or over and not settled. uid → when, where.
        self._again: dict[str, tuple[float, float, Whereabouts]] = {}
        self._written: dict[str, str] = {}
        self._settled: set[str] = set()
        self._named: dict[tuple[str, str], str] = {}
        self._present: set[str] = set()

    def remember(self, rows: Iterable[Remembered]) -> None:
        """What is on record already, when a watch begins."""
        for row in rows:
            self._written[row.uid] = row.fingerprint
            if row.settled:
                self._settled.add(row.uid)

    def watch_begins(self) -> None:
        self._present.clear()

    @property
    def present(self) -> frozenset[str]:
        """All that a watch has told of since it began."""
        return frozenset(self._present)

    def tell(self, job: Job) -> bool:
        """Whether there is something to write."""
        before = self._named.get((job.namespace, job.name))
        if before is not None and before != job.uid:
            self._leave(before, job.namespace, job.name)
        self._named[job.namespace, job.name] = job.uid
        self._present.add(job.uid)
        if self._written.get(job.uid) == fingerprint(job):
            self._told.pop(job.uid, None)
            if job.finished and job.uid not in self._settled:
                self.look_again(_where(job))
            return job.uid in self._again
        self._settled.discard(job.uid)
        self._told[job.uid] = job
        return True

    def gone(self, told: Gone) -> bool:
        uid = self._named.pop((told.namespace, told.name), None)
        if uid is None:
            return False
        self._leave(uid, told.namespace, told.name)
        return True

    def look_again(self, where: Whereabouts, *, at_once: bool = False) -> None:
        """Each time later than the last."""
        _, pause, _ = self._again.get(where.uid, (0.0, 0.0, where))
        pause = 0.0 if at_once else min(max(SOON, 2 * pause), LATE)
        self._again[where.uid] = (self._clock() + pause, pause, where)

    def take(self, most: int) -> list[Job]:
        uids = list(self._told)[:most]
        return [self._told.pop(uid) for uid in uids]

    def take_due(self, most: int) -> list[Whereabouts]:
        """They stay until they are settled, or said farewell to."""
        now = self._clock()
        due = [where for when, _, where in self._again.values() if when <= now][:most]
        for where in due:
            self.look_again(where)
        return due

    def put_back(self, jobs: Iterable[Job]) -> None:
        for job in jobs:
            self._told.setdefault(job.uid, job)

    def written(self, job: Job, *, settled: bool) -> None:
        self._written[job.uid] = fingerprint(job)
        if settled:
            self._settled.add(job.uid)
            self._again.pop(job.uid, None)
        elif job.finished or job.uid not in self._present:
            if job.uid not in self._again:
                self.look_again(_where(job))
        else:
            self._again.pop(job.uid, None)

    def forgotten(self, uid: str) -> None:
        self._again.pop(uid, None)
        self._written.pop(uid, None)
        self._settled.discard(uid)

    def next_look(self) -> float | None:
        """Seconds until something is due."""
        if not self._again:
            return None
        return max(0.0, min(when for when, _, _ in self._again.values()) - self._clock())

    def _leave(self, uid: str, namespace: str, name: str) -> None:
        """What was told of it last is still to be written, then what became of it."""
        self._present.discard(uid)
        self.look_again(Whereabouts(uid, namespace, name), at_once=True)


class Blindness:
    """Since when nothing was seen, and why; a gap once it is over."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._since: dict[str, tuple[int, str]] = {}
        self._gaps: list[Gap] = []

    def begins(self, stream: str, why: str, since: int | None = None) -> None:
        """The first reason counts."""
        self._since.setdefault(stream, (since if since is not None else self._clock(), why))

    def ends(self, stream: str) -> None:
        begun = self._since.pop(stream, None)
        if begun is not None:
            since, why = begun
            self._gaps.append(Gap(from_at=since, until_at=self._clock(), why=why))

    @property
    def sees(self) -> bool:
        return not self._since

    def sees_with(self, stream: str) -> bool:
        return stream not in self._since

    def take(self) -> list[Gap]:
        taken, self._gaps = self._gaps, []
        return taken

    def put_back(self, gaps: list[Gap]) -> None:
        self._gaps = [*gaps, *self._gaps]


def _where(job: Job) -> Whereabouts:
    return Whereabouts(job.uid, job.namespace, job.name)
