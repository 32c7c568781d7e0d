"""Follows an engine and writes down what becomes of its jobs, so that it outlives them.

Three tasks: one listens to jobs, one to events, and one writes. The listener only notes the last
word on each job; the writer asks for the replicas of those that changed and writes all of it at
once. A job that has settled (over, and every replica too) is not asked for again, also not by the
next recorder. Where a stream ends, the engine or the database is away, it is tried again, and the
records say between when nobody looked.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress

import msgspec
from sqlalchemy import Connection

from regatta.api.errors import JobNotFound, RecordsAway, RegattaError
from regatta.api.job import Job
from regatta.engines.base import Engine, Gone, Lost, Synced
from regatta.engines.inventory import EventView, RunView
from regatta.server.records.engine_abilities import RemembersWhatWent, drop_secrets
from regatta.server.records.moments import now_millis
from regatta.server.records.recording.backlog import Backlog, Blindness, Whereabouts
from regatta.server.records.recording.event_writes import (
    LAST_EVENT,
    LAST_SEEN,
    Gap,
    read_progress,
    write_events,
    write_gaps,
    write_progress,
)
from regatta.server.records.recording.observation_writes import (
    Farewell,
    remembered,
    unknown_of,
    write_farewell,
    write_observation,
    write_run,
)
from regatta.server.records.recording.observations import Observation, has_ended
from regatta.server.records.team_database import Database

log = logging.getLogger(__name__)

#: Seconds in which changes gather before they are written.
GATHER_SECONDS = 0.2
#: Jobs in one transaction, events in one, and questions to the engine at once.
JOBS_AT_ONCE, EVENTS_AT_ONCE, QUESTIONS = 200, 500, 4
#: Seconds between notes that everything was seen.
PULSE_SECONDS = 60.0
#: Seconds before another try: first, longest.
RETRY, LONGEST_RETRY = 0.5, 30.0
#: Seconds that an event waits for its job to be on record.
EVENT_WAITS, HELD_SECONDS = 30.0, 1.0
_JOBS, _EVENTS, _WRITES = "jobs", "events", "writes"


class _Batch(msgspec.Struct):
    """What one transaction writes."""

    observations: list[Observation]
    farewells: list[Farewell]
    #: Jobs that came and went unseen.
    runs: list[RunView]
    events: list[EventView]
    gaps: list[Gap]
    #: Everything was seen until then.
    seen_at: int | None
    read_to: int


class Recorder:
    """`engine_name` tells the jobs of different engines in one database apart."""

    def __init__(
        self,
        engine: Engine,
        database: Database,
        *,
        engine_name: str = "local",
        now: Callable[[], int] = now_millis,
    ) -> None:
        self._engine, self._database, self._name = engine, database, engine_name
        self._now = now
        self._backlog = Backlog(time.monotonic)
        self._blind = Blindness(now)
        self._stirred = asyncio.Event()
        self._events = _EventQueue()
        self._questions = asyncio.Semaphore(QUESTIONS)
        #: A watch tells what there is before it tells news; then what it did not tell of is gone.
        self._listing = True
        self._sweep_due = False
        #: The stream of events stands, and its engine was lost.
        self._events_away = False
        #: Than one transaction takes: what waits has gathered long enough.
        self._is_more = False
        self._seen_until: int | None = None
        self._pulse_at = 0.0

    @property
    def sees(self) -> bool:
        """Whether all that happens is seen, and written, just now."""
        return self._blind.sees and not self._listing

    async def run(self) -> None:
        """Until cancelled; what was told by then and not written is found at the next start."""
        await self._begin()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._listen(_JOBS, self._hear_jobs))
            tasks.create_task(self._listen(_EVENTS, self._hear_events))
            tasks.create_task(self._write_for_ever())

    async def _begin(self) -> None:
        """Where the recorder before this one left off."""
        pause = RETRY
        while True:
            try:
                rows = await self._database.read(remembered, self._name)
                read_to = await self._database.read(read_progress, self._name, LAST_EVENT)
                self._seen_until = await self._database.read(read_progress, self._name, LAST_SEEN)
                break
            except RecordsAway as away:
                log.warning("%s", away)
            pause = await _rest(pause)
        self._backlog.remember(rows)
        self._events.read_to = read_to or 0
        if self._seen_until is not None:
            self._blind.begins(_JOBS, "the server was not running", self._seen_until)

    # Listening

    async def _listen(self, stream: str, hear: Callable[[], Awaitable[None]]) -> None:
        pause = RETRY
        while True:
            began = time.monotonic()
            try:
                await hear()
                why = "the engine ended its stream"
            except (RegattaError, OSError) as trouble:
                why = f"the engine does not answer: {trouble}"
            if stream == _EVENTS:
                self._events_away = False
            log.warning("recording %s: %s", stream, why)
            self._blind.begins(stream, why)
            if time.monotonic() - began > LONGEST_RETRY:  # it was well for a while
                pause = RETRY
            pause = await _rest(pause)

    async def _hear_jobs(self) -> None:
        self._listing = True
        self._backlog.watch_begins()
        async with aclosing(self._engine.watch()) as updates:
            async for update in updates:
                if isinstance(update, Lost):
                    self._blind.begins(_JOBS, f"the engine was away: {update.why}")
                elif self._hear(update):
                    self._stirred.set()

    def _hear(self, update: Job | Gone | Synced) -> bool:
        """Whether there is something to do."""
        if isinstance(update, Synced):
            self._sweep_due, self._listing = True, False
            if self._events_away:  # the same engine told of both, and nobody tells of quiet
                self._events_away = False
                self._blind.ends(_EVENTS)
        if not self._listing:
            self._blind.ends(_JOBS)
        if isinstance(update, Gone):
            return self._backlog.gone(update)
        return isinstance(update, Synced) or self._backlog.tell(update)

    async def _hear_events(self) -> None:
        async with aclosing(self._engine.follow_events(after=self._events.read_to)) as updates:
            async for update in updates:
                self._events_away = isinstance(update, Lost)
                if isinstance(update, Lost):
                    self._blind.begins(_EVENTS, f"the engine was away: {update.why}")
                    continue
                self._blind.ends(_EVENTS)
                await self._events.put(update)
                self._stirred.set()

    # Writing

    async def _write_for_ever(self) -> None:
        pause = RETRY
        while True:
            await self._work_comes()
            try:
                await self._write()
            except RegattaError as trouble:  # the database is away, or the engine
                log.warning("recording: %s", trouble)
                self._blind.begins(_WRITES, str(trouble))
                pause = await _rest(pause)
                self._stirred.set()
            else:
                pause = RETRY
                if not self._blind.sees_with(_WRITES):
                    self._blind.ends(_WRITES)
                    self._stirred.set()

    async def _work_comes(self) -> None:
        if self._is_more:
            return
        looks = self._backlog.next_look()
        until = [max(0.0, self._pulse_at - time.monotonic())]
        until += [looks] if looks is not None else []
        until += [HELD_SECONDS] if self._events.held else []
        with suppress(TimeoutError):
            async with asyncio.timeout(min(until)):
                await self._stirred.wait()
            await asyncio.sleep(GATHER_SECONDS)
        self._stirred.clear()

    async def _write(self) -> None:
        jobs = self._backlog.take(JOBS_AT_ONCE)
        arrived = self._events.take(EVENTS_AT_ONCE)
        self._is_more = len(jobs) == JOBS_AT_ONCE or self._events.waits
        gaps = self._blind.take()
        try:
            seen, gone, runs = await self._ask(jobs)
            # Before it is on record that nothing more is to be done for them.
            await drop_secrets(self._engine, [one.job for one in seen if one.settled])
            batch = _Batch(
                observations=seen,
                farewells=gone,
                runs=runs,
                events=[event for _, event in arrived],
                gaps=gaps,
                seen_at=self._now() if self.sees else None,
                read_to=self._events.read_to,
            )
            unknown = await self._database.run(_write_batch, self._name, batch, self._now())
        except BaseException:
            self._backlog.put_back(jobs)
            self._events.put_back(arrived)
            self._blind.put_back(gaps)
            raise
        self._seen_until = batch.seen_at or self._seen_until
        self._events.hold(arrived, unknown)
        for observed in seen:
            self._backlog.written(observed.job, settled=observed.settled)
        for farewell in gone:
            self._backlog.forgotten(farewell.uid)
        self._pulse_at = time.monotonic() + PULSE_SECONDS

    async def _ask(
        self, jobs: list[Job]
    ) -> tuple[list[Observation], list[Farewell], list[RunView]]:
        """The engine, for what a watch does not tell."""
        seen = list(await asyncio.gather(*map(self._observe, jobs)))
        gone: list[Farewell] = []
        runs: list[RunView] = []
        missing: list[Whereabouts] = []
        sweeps = self._sweep_due
        if sweeps:
            missing, gone, runs = await self._sweep()
        due = [(where, True) for where in self._backlog.take_due(JOBS_AT_ONCE)]
        for found in await asyncio.gather(
            *(self._look(where, live) for where, live in [*due, *((m, False) for m in missing)])
        ):
            seen += [one for one in found if isinstance(one, Observation)]
            gone += [one for one in found if isinstance(one, Farewell)]
        if sweeps:
            self._sweep_due = False
        return seen, gone, runs

    async def _sweep(self) -> tuple[list[Whereabouts], list[Farewell], list[RunView]]:
        """What the watch did not tell of: jobs to ask for, jobs that went after they had settled,
        and jobs that came and went while nobody looked."""
        rows = await self._database.read(remembered, self._name)
        history = {run.uid: run for run in await self._engine.history()}
        present = self._backlog.present
        missing, gone = [], []
        for row in rows:
            run = history.get(row.uid)
            if row.uid in present or (run is not None and run.current):
                continue
            if row.settled:
                gone.append(Farewell(uid=row.uid))
            else:
                missing.append(Whereabouts(row.uid, row.namespace, row.name))
        past = {uid for uid, run in history.items() if not run.current and has_ended(run)}
        unknown = await self._database.read(unknown_of, self._name, past)
        return missing, gone, [history[uid] for uid in sorted(unknown)]

    async def _observe(self, job: Job) -> Observation:
        try:
            async with self._questions:
                pods = await self._engine.pods(job.namespace, job.name, job.uid)
        except JobNotFound:  # the watch will tell
            return Observation(job=job)
        return Observation(job=job, pods=tuple(pods))

    async def _look(self, where: Whereabouts, live: bool) -> list[Observation | Farewell]:
        """At one that the watch tells nothing more of."""
        try:
            async with self._questions:
                job = await self._engine.get(where.namespace, where.name, where.uid)
            return [await self._observe(job)]
        except JobNotFound:
            pass
        if (last := await self._last_of(where)) is not None:
            return [last, Farewell(uid=where.uid)]
        try:
            async with self._questions:
                runs = await self._engine.history(where.namespace, where.name, uid=where.uid)
        except JobNotFound:
            runs = []
        run = runs[0] if runs else None
        return [Farewell(uid=where.uid, run=run, seen=live, seen_until=self._seen_until)]

    async def _last_of(self, where: Whereabouts) -> Observation | None:
        """As it was when it went, where the engine has no history and watched for us."""
        if not isinstance(self._engine, RemembersWhatWent):
            return None
        async with self._questions:
            found = await self._engine.departed(uid=where.uid)
        return None if found is None else Observation(job=found[0], pods=tuple(found[1]))


class _EventQueue:
    """Events on their way to the records. One may come before its job does, and waits for it."""

    def __init__(self) -> None:
        self._waiting: list[tuple[float, EventView]] = []
        self._has_room = asyncio.Event()
        self.held: list[tuple[float, EventView]] = []
        #: All up to this one are written.
        self.read_to = 0
        self._last = 0

    @property
    def waits(self) -> bool:
        return bool(self._waiting)

    async def put(self, event: EventView) -> None:
        """Waits for room: while the database is away the engine keeps them."""
        while len(self._waiting) >= 4 * EVENTS_AT_ONCE:
            self._has_room.clear()
            await self._has_room.wait()
        self._waiting.append((time.monotonic(), event))

    def take(self, most: int) -> list[tuple[float, EventView]]:
        taken = [*self.held, *self._waiting[:most]]
        self.held, self._waiting = [], self._waiting[most:]
        self._has_room.set()
        return taken

    def put_back(self, taken: list[tuple[float, EventView]]) -> None:
        self._waiting = [*taken, *self._waiting]

    def hold(self, taken: list[tuple[float, EventView]], unknown: list[EventView]) -> None:
        """What of it is of jobs that nobody knows yet. Of some nobody ever will."""
        ids = {event.id for event in unknown}
        oldest = time.monotonic() - EVENT_WAITS
        self.held = [(at, event) for at, event in taken if event.id in ids and at > oldest]
        self._last = max([self._last, *(event.id for _, event in taken)])
        held = [event.id for _, event in self.held]
        self.read_to = max(self.read_to, min(held) - 1 if held else self._last)


def _write_batch(connection: Connection, engine: str, batch: _Batch, now: int) -> list[EventView]:
    """Returns the events of jobs that the records do not know."""
    for observed in batch.observations:
        write_observation(connection, engine, observed, now)
    for run in batch.runs:
        write_run(connection, engine, run, now)
    for farewell in batch.farewells:
        write_farewell(connection, engine, farewell, now)
    about_jobs = [event for event in batch.events if event.job]
    unknown = write_events(connection, engine, about_jobs)
    write_gaps(connection, batch.gaps)
    if batch.read_to:
        write_progress(connection, engine, LAST_EVENT, batch.read_to)
    if batch.seen_at is not None:
        write_progress(connection, engine, LAST_SEEN, batch.seen_at)
    return unknown


async def _rest(pause: float) -> float:
    """The next pause is longer."""
    await asyncio.sleep(pause * random.uniform(0.5, 1))
    return min(2 * pause, LONGEST_RETRY)
