"""An engine that says what a test has it say, and counts what it is asked."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec.structs import replace

from regatta.api.errors import JobNotFound
from regatta.api.job import Job, JobSpec, JobStatus, Metadata, Mode, Phase, RoleSpec
from regatta.engines.base import Lost, Synced, WatchUpdate
from regatta.engines.inventory import EventView, PodView, RunView

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


def a_job(name: str, phase: Phase = Phase.RUNNING, **status: Any) -> Job:
    worker = RoleSpec(replicas=1, template={})
    ended = BEGAN + timedelta(minutes=5) if phase.final else None
    times = {"start_time": BEGAN, "completion_time": ended}
    return Job(
        metadata=Metadata(name=name, uid=f"uid-{name}", creation_timestamp=BEGAN),
        spec=JobSpec(mode=Mode.SINGLE, worker=worker),
        status=JobStatus(phase=phase, **{**times, **status}),
    )


def a_pod(job: Job, **changes: Any) -> PodView:
    over = job.finished
    pod = PodView(
        name=f"{job.name}-worker-0",
        uid=f"pod-{job.name}-{job.status.attempt}",
        role="worker",
        index=0,
        attempt=job.status.attempt,
        phase="Succeeded" if over else "Running",
        current=True,
        exit_code=0 if over else None,
        created_at=BEGAN,
        finished_at=BEGAN + timedelta(minutes=5) if over else None,
    )
    return replace(pod, **changes)


def an_event(
    number: int, job: str, message: str = "", minutes: float = 1, **more: Any
) -> EventView:
    at = BEGAN + timedelta(minutes=minutes)
    fields = {"type": "Normal", "reason": "Told", "namespace": "default", **more}
    return EventView(id=number, at=at, message=message, job=job, **fields)


class Scripted:
    """As much of an Engine as a recorder asks. `say` reaches whoever watches."""

    def __init__(self, *jobs: Job) -> None:
        self.jobs = {job.uid: job for job in jobs}
        self.pods_of: dict[str, list[PodView]] = {}
        self.runs: list[RunView] = []
        self.asked: Counter[str] = Counter()
        #: What calls raise, while it is there.
        self.trouble: Exception | None = None
        self._watchers: list[asyncio.Queue[WatchUpdate | Exception]] = []
        self._listeners: list[asyncio.Queue[EventView | Lost]] = []
        self.told: list[EventView] = []

    def say(self, *updates: WatchUpdate | Exception) -> None:
        for update in updates:
            if isinstance(update, Job):
                self.jobs[update.uid] = update
            for watcher in self._watchers:
                watcher.put_nowait(update)

    def happens(self, *events: EventView) -> None:
        self.told += events
        for listener in self._listeners:
            for event in events:
                listener.put_nowait(event)

    async def watch(self) -> AsyncGenerator[WatchUpdate, None]:
        self._count("watch")
        queue: asyncio.Queue[WatchUpdate | Exception] = asyncio.Queue()
        self._watchers = [queue]
        for job in list(self.jobs.values()):
            yield job
        yield Synced()
        while True:
            update = await queue.get()
            if isinstance(update, Exception):
                raise update
            yield update

    async def follow_events(self, *, after: int = 0) -> AsyncGenerator[EventView | Lost, None]:
        self._count("follow_events")
        queue: asyncio.Queue[EventView | Lost] = asyncio.Queue()
        self._listeners = [queue]
        for event in [event for event in self.told if event.id > after]:
            yield event
        while True:
            yield await queue.get()

    async def pods(self, _namespace: str, _name: str, uid: str) -> list[PodView]:
        self._count("pods")
        if uid not in self.jobs:
            raise JobNotFound(uid)
        return self.pods_of.get(uid, [a_pod(self.jobs[uid])])

    async def get(self, _namespace: str, _name: str, uid: str) -> Job:
        self._count("get")
        if uid not in self.jobs:
            raise JobNotFound(uid)
        return self.jobs[uid]

    async def history(self, *_: str, uid: str = "") -> list[RunView]:
        self._count("history")
        found = [run for run in self.runs if uid in ("", run.uid)]
        if uid and not found:
            raise JobNotFound(uid)
        return found

    def _count(self, call: str) -> None:
        self.asked[call] += 1
        if self.trouble is not None:
            raise self.trouble
