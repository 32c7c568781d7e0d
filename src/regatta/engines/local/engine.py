"""The local engine: jobs as processes of this machine, as an `Engine`.

What blocks (the store, logs, a job's preflight) runs in a pool of threads, so that no door holds up
another. Streams wait for the store's feed, and cost nothing while nothing changes.
"""

from __future__ import annotations

import asyncio
import builtins
import logging
import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import partial
from typing import Any, ParamSpec, TypeVar

from regatta import __version__
from regatta.api.job import Job
from regatta.controller.retention import Retention, in_words
from regatta.engines.base import (
    Accepted,
    Gone,
    JobUpdate,
    LogBatch,
    LogQuery,
    LogUpdate,
    Preview,
    Shell,
    Submission,
    Synced,
    WatchUpdate,
)
from regatta.engines.inventory import (
    Capacity,
    EventView,
    PodView,
    Removal,
    RunView,
    Storage,
    Traits,
)
from regatta.engines.local import config_file
from regatta.engines.local.clock import Clock, SystemClock
from regatta.engines.local.config_file import read_retention
from regatta.engines.local.deleting import Deleting
from regatta.engines.local.home import HeldFolder, Home, lock_home
from regatta.engines.local.jobs import LocalJobs
from regatta.engines.local.loop import Loop
from regatta.engines.local.recovery import jobs_to_look_at, sweep_leftovers
from regatta.engines.local.replicas.runtime import Runtime
from regatta.engines.local.scheduling.binding import scatter
from regatta.engines.local.scheduling.machine import Machine, find_machine
from regatta.engines.local.stock import Stock
from regatta.engines.local.store.database import Store
from regatta.engines.logs.searches import search

log = logging.getLogger(__name__)

#: Calls that may block at once. A submit's checks may take a minute, so there are more of them
#: than cores.
THREADS = 40
#: A follower looks again this soon after lines came, and ever later while none do.
SOONEST, LATEST = 0.05, 0.3
#: Changes that come closer together than this are told as one.
SETTLE_SECONDS = 0.05
#: A watcher that nothing wakes looks whether it is still wanted.
IDLE_SECONDS = 60.0
#: Jobs that are read at a time for one who watches.
NEWS_AT_ONCE = 8

#: How long a start waits for what the engine before left to be looked at, so that the first answer
#: is true. What takes longer is found out while others are answered.
FIRST_LOOK = 1.0
HERE = Shell()

P = ParamSpec("P")
T = TypeVar("T")


class LocalEngine:
    """One per home, which it locks. Made ready to use: it has picked up what was left running."""

    def __init__(
        self,
        home: Home,
        *,
        machine: Machine | None = None,
        clock: Clock | None = None,
        runtime: Runtime | None = None,
        retention: Retention | None = None,
    ) -> None:
        """`retention`: else as `config.yaml` beside the home says."""
        problem = ""
        if retention is None:
            retention, problem = read_retention(home.path.parent / config_file.NAME)
        self._closed = False
        self._lock = lock_home(home)
        self._folder = HeldFolder(home.path)
        try:
            machine = find_machine() if machine is None else machine
            self._store = _open_store(home)
        except BaseException:
            self._folder.close()
            os.close(self._lock)
            raise
        clock = SystemClock() if clock is None else clock
        clock.resume(self._store.read.counter("awake"))
        runtime = Runtime() if runtime is None else runtime
        sweep_leftovers(home, self._store.read, runtime, keep=self._store.is_new)
        self._loop = Loop(home, self._store, runtime, machine, clock, retention)
        if problem:
            self._loop.notices.wrong_setting(problem)
        self._loop.prime(jobs_to_look_at(self._store.read))
        self._loop.start()
        self._loop.looked.wait(FIRST_LOOK)
        self._jobs = LocalJobs(home, self._store, self._loop, machine, clock)
        self._deleting = Deleting(home, self._store, self._loop, clock)
        self._stock = Stock(home, self._store, retention)
        log.info("of runs that have ended, %s", in_words(retention))
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="door")

    async def close(self) -> None:
        """Let go of the home. Running replicas run on, unless the home was removed: nobody could
        ever find them again."""
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._loop.close(end_all=not self._folder.is_there)
        self._pool.shutdown(cancel_futures=True)
        self._store.close()
        self._folder.close()
        os.close(self._lock)

    async def _call(self, function: Callable[P, T], *args: P.args, **more: P.kwargs) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, partial(function, *args, **more))

    async def traits(self) -> Traits:
        return Traits(engine="local", notices=self._jobs.notices())

    async def version(self) -> str:
        return __version__

    # Jobs

    async def submit(self, submission: Submission, shell: Shell | None = None) -> Accepted:
        return await self._call(self._jobs.submit, submission, shell or HERE)

    async def arrived(self, key: str, namespace: str, name: str) -> RunView | None:
        """What a submission with this key made; it knows without being told where."""
        return await self._call(self._jobs.arrived, key)

    async def preview(
        self, submission: Submission, shell: Shell | None = None, *, stored: bool = False
    ) -> Preview:
        return await self._call(self._jobs.preview, submission, shell or HERE)

    async def get(self, namespace: str, name: str, uid: str = "") -> Job:
        return await self._call(self._jobs.get, namespace, name, uid)

    async def list(
        self, namespace: str | None = None, *, finished: int | None = None
    ) -> builtins.list[Job]:
        return await self._call(self._jobs.list, namespace, finished=finished)

    async def history(
        self,
        namespace: str | None = None,
        name: str | None = None,
        *,
        uid: str = "",
        limit: int | None = None,
    ) -> builtins.list[RunView]:
        return await self._call(self._jobs.history, namespace, name, uid, limit)

    async def stop(self, namespace: str, name: str) -> Job:
        return await self._call(self._jobs.stop, namespace, name)

    async def delete(self, namespace: str, name: str) -> None:
        await self._call(self._deleting.delete, namespace, name)

    async def delete_many(
        self, namespace: str, *, live: bool = False, ended_before: datetime | None = None
    ) -> Removal:
        return await self._call(self._deleting.delete_many, namespace, live, ended_before)

    async def scale(self, namespace: str, name: str, role: str, replicas: int) -> Job:
        return await self._call(self._jobs.scale, namespace, name, role, replicas)

    async def suspend(self, namespace: str, name: str) -> Job:
        return await self._call(self._jobs.suspend, namespace, name, True)

    async def resume(self, namespace: str, name: str) -> Job:
        return await self._call(self._jobs.suspend, namespace, name, False)

    # What happened to them

    async def pods(self, namespace: str, name: str, uid: str = "") -> builtins.list[PodView]:
        return await self._call(self._jobs.pods, namespace, name, uid)

    async def events(
        self, namespace: str | None, name: str | None, after: int = 0, uid: str = ""
    ) -> builtins.list[EventView]:
        return await self._call(self._jobs.events, namespace, name, after, uid)

    async def storage(self) -> Storage:
        return await self._call(self._stock.take)

    async def capacity(self, namespace: str | None = None) -> Capacity:
        return await self._call(self._jobs.capacity, namespace)

    # Streams

    async def logs(
        self, namespace: str, name: str, query: LogQuery
    ) -> AsyncGenerator[LogUpdate, None]:
        read = self._reader_for(query)
        log = await read(self._jobs.open_log, namespace, name, query, follow=False)
        try:
            if log.remark is not None:
                yield log.remark
            batches = log.read(ended=True)
            while (batch := await read(next, batches, None)) is not None:
                yield batch
        finally:
            log.close()

    def _reader_for(self, query: LogQuery) -> Callable[..., Awaitable[Any]]:
        return self._call if query.grep is None else partial(search, query.asker)

    async def follow(
        self, namespace: str, name: str, query: LogQuery, *, status: bool = True
    ) -> AsyncGenerator[JobUpdate, None]:
        feed = self._store.feed
        read = self._reader_for(query)
        log = await read(self._jobs.open_log, namespace, name, query, follow=True)
        try:
            if log.is_of_another:
                yield Gone(namespace, name)
                return
            # Whoever is cut off before the first line leaves out the same ones when they resume.
            yield LogBatch((), log.position)
            if log.remark is not None:
                yield log.remark
            told: Job | None = None
            version, pause, ended = -1, SOONEST, False
            while not ended:
                if feed.version != version:
                    # Before the lines are read: nothing is written after the end.
                    version = feed.version
                    ended = await self._call(log.look)
                    job = await self._call(self._jobs.followed, log.uid, by_name=not query.uid)
                    if status and job is not None and job != told:
                        told = job
                        yield job
                pause = min(pause * 1.5, LATEST)
                batches = log.read(ended=ended)
                while (batch := await read(next, batches, None)) is not None:
                    pause = SOONEST
                    yield batch
                if not ended:
                    await feed.moved(version, pause)
            job = await self._call(self._jobs.followed, log.uid, by_name=not query.uid)
            if job is None:
                yield Gone(namespace, name)
            elif status:
                yield job
        finally:
            log.close()

    async def watch(
        self, namespace: str | None = None, name: str | None = None
    ) -> AsyncGenerator[WatchUpdate, None]:
        feed = self._store.feed
        version = feed.version
        known: dict[str, tuple[str, str]] = {}
        present = await self._call(self._jobs.uids, namespace, name)
        async for update in self._news(present, known):
            yield update
        yield Synced()
        while True:
            await feed.moved(version, IDLE_SECONDS)
            await asyncio.sleep(SETTLE_SECONDS)
            version, touched = feed.since(version)
            if touched is None:  # we were away for too long: everything is news
                touched = {*await self._call(self._jobs.uids, namespace, name), *known}
            async for update in self._news([*touched], known):
                if _matches(update, namespace, name):
                    yield update

    async def _news(
        self, uids: builtins.list[str], known: dict[str, tuple[str, str]]
    ) -> AsyncGenerator[Job | Gone, None]:
        """A few at a time: whoever reads slowly, or nothing, has few jobs held for them."""
        for start in range(0, len(uids), NEWS_AT_ONCE):
            some = uids[start : start + NEWS_AT_ONCE]
            for update in await self._call(self._jobs.news, some, known):
                yield update

    async def follow_events(
        self, namespace: str | None = None, name: str | None = None, after: int = 0
    ) -> AsyncGenerator[EventView, None]:
        feed = self._store.feed
        version = feed.version
        found = await self._call(self._jobs.events, namespace, name, after)
        while True:
            for event in found:
                after = max(after, event.id)
                yield event
            await feed.moved(version, IDLE_SECONDS)
            await asyncio.sleep(SETTLE_SECONDS)
            version = feed.version
            found = await self._call(self._jobs.events, namespace, name, after, of_any=True)


def _open_store(home: Home) -> Store:
    """Raises what a store raises: also where nothing can be written there."""
    store = Store(home.database)
    try:
        with store.write() as tx:
            scatter(tx, str(home.path))
    except BaseException:
        store.close()
        raise
    return store


def _matches(update: Job | Gone, namespace: str | None, name: str | None) -> bool:
    return namespace in (None, update.namespace) and name in (None, update.name)
