"""Jobs and events as they change, until the reader leaves."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

from regatta.api.job import Job
from regatta.engines.base import EventView, Gone, Lost, Synced
from regatta.engines.kubernetes.api.client import KubeClient
from regatta.engines.kubernetes.api.errors import Unreachable
from regatta.engines.kubernetes.api.models import Bare
from regatta.engines.kubernetes.api.resources import EVENTS, PADDLE_JOBS
from regatta.engines.kubernetes.cache.informer import Informer, InformerSettings
from regatta.engines.kubernetes.engine.events import (
    ABOUT_JOBS,
    ABOUT_PODS,
    Event,
    Story,
    in_order,
    job_event,
)
from regatta.engines.kubernetes.engine.reading import read_job
from regatta.engines.kubernetes.objects.documents import JobDocument

#: How long a stream looks for a cluster that is away before it gives up.
PATIENCE_SECONDS = 60.0
#: How often trouble is looked for while nothing comes.
GLANCE_SECONDS = 0.5

SETTINGS = InformerSettings(first_pause_seconds=0.2, longest_pause_seconds=5.0)


@contextlib.asynccontextmanager
async def running(*informers: Informer[Any]) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(informer.run()) for informer in informers]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Troubles:
    """Notices that informers have lost the cluster, once each time, and for how long."""

    def __init__(self, *informers: Informer[Any]) -> None:
        self._informers = informers
        self._since: float | None = None

    def news(self) -> Lost | None:
        """Raises Unreachable once patience is at its end."""
        why = next((i.trouble for i in self._informers if i.trouble), "")
        if not why:
            self._since = None
            return None
        if self._since is None:
            self._since = time.monotonic()
            return Lost(why)
        if time.monotonic() - self._since > PATIENCE_SECONDS:
            raise Unreachable(why)
        return None


async def watch_jobs(
    client: KubeClient, namespace: str | None, name: str | None
) -> AsyncGenerator[Job | Gone | Synced | Lost, None]:
    """Every matching job as it is now, oldest first, then each one again when it changed."""
    fields = f"metadata.name={name}" if name else ""
    # An informer would wait for better times; a refusal should end this.
    await client.list(PADDLE_JOBS, Bare, namespace=namespace or "", field_selector=fields)
    informer = Informer(
        client,
        PADDLE_JOBS,
        JobDocument,
        namespace=namespace or "",
        field_selector=fields,
        settings=SETTINGS,
    )
    news: asyncio.Queue[Job | Gone] = asyncio.Queue()

    def changed(old: JobDocument | None, new: JobDocument | None) -> None:
        if new is not None:
            news.put_nowait(read_job(new))
        elif old is not None:
            news.put_nowait(Gone(old.metadata.namespace, old.metadata.name))

    informer.on_change(changed)
    troubles = Troubles(informer)
    async with running(informer):
        while not informer.synced.is_set():
            if (lost := troubles.news()) is not None:
                yield lost
            await asyncio.sleep(0.01)
        first = [news.get_nowait() for _ in range(news.qsize())]
        for job in oldest_first([update for update in first if isinstance(update, Job)]):
            yield job
        yield Synced()
        async for update in _arriving(news, troubles):
            yield update


async def follow_events(
    client: KubeClient, namespace: str | None, job: Job | None
) -> AsyncGenerator[EventView | Lost, None]:
    """Events from the first one that the cluster still keeps, then as they happen."""
    story = None if job is None else Story(job)
    kinds = [ABOUT_JOBS] if story is None else [ABOUT_JOBS, ABOUT_PODS]
    informers = [
        Informer(
            client,
            EVENTS,
            Event,
            namespace=namespace or "",
            field_selector=kind,
            settings=SETTINGS,
        )
        for kind in kinds
    ]
    news: asyncio.Queue[EventView] = asyncio.Queue()

    def changed(old: Event | None, new: Event | None) -> None:
        view = None if new is None else (story.view(new) if story else job_event(new))
        if view is not None:
            news.put_nowait(view)

    for informer in informers:
        informer.on_change(changed)
    troubles = Troubles(*informers)
    async with running(*informers):
        while not all(informer.synced.is_set() for informer in informers):
            if (lost := troubles.news()) is not None:
                yield lost
            await asyncio.sleep(0.01)
        for view in in_order([news.get_nowait() for _ in range(news.qsize())]):
            yield view
        async for update in _arriving(news, troubles):
            yield update


def oldest_first(jobs: list[Job]) -> list[Job]:
    def age(job: Job) -> tuple[float, str, str]:
        made = job.metadata.creation_timestamp
        return made.timestamp() if made else 0.0, job.namespace, job.name

    return sorted(jobs, key=age)


async def _arriving(news: asyncio.Queue[Any], troubles: Troubles) -> AsyncIterator[Any]:
    while True:
        try:
            async with asyncio.timeout(GLANCE_SECONDS):
                update = await news.get()
        except TimeoutError:
            if (lost := troubles.news()) is not None:
                yield lost
            continue
        yield update
