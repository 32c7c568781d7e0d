"""Jobs and events as they change, until the reader leaves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack

from regatta.api.job import Job
from regatta.engines.base import Gone, Lost, Synced, WatchUpdate
from regatta.engines.inventory import EventView
from regatta.engines.kubernetes.cache.shared import Reader
from regatta.engines.kubernetes.cache.unread import Unread
from regatta.engines.kubernetes.engine.events import Event, Story, in_order, job_event
from regatta.engines.kubernetes.engine.jobs import read_job
from regatta.engines.kubernetes.engine.subscriptions import Subscriptions, Troubles
from regatta.engines.kubernetes.objects.job_document import JobDocument

#: How often trouble is looked for while nothing comes.
GLANCE_SECONDS = 0.5
#: Events of jobs and of pods come along two ways; those that come together are put in order.
SETTLE_SECONDS = 0.05


async def watch_jobs(
    subscriptions: Subscriptions, namespace: str | None, name: str | None, *, seen: str = ""
) -> AsyncGenerator[WatchUpdate, None]:
    """Every matching job as it is now, oldest first, then each one again when it changed."""
    unread: Unread[JobDocument] = Unread()
    async with subscriptions.jobs(namespace, name, unread.changed, seen=seen) as reader:
        present = [read_job(found) for _, found in unread.take() if found is not None]
        for job in oldest_first(present):
            yield job
        yield Synced()
        troubles = Troubles(reader)
        away = False
        while True:
            back = away and not troubles.why  # then what it missed is among what is unread
            if await unread.wait(GLANCE_SECONDS):
                for metadata, found in unread.take():
                    if found is None:
                        yield Gone(metadata.namespace, metadata.name)
                    else:
                        yield read_job(found)
            if back:
                away = False
                yield Synced()
            if (lost := troubles.news()) is not None:
                away = True
                yield lost


async def follow_events(
    subscriptions: Subscriptions,
    namespace: str | None,
    name: str | None,
    job: Job | None,
    after: int,
) -> AsyncGenerator[EventView | Lost, None]:
    """Events from the first one that the cluster still keeps, or after that id, then as they
    happen."""
    unread: Unread[Event] = Unread()
    view: Callable[[Event], EventView | None] = job_event if job is None else Story(job).view
    async with AsyncExitStack() as stack:
        readers: list[Reader[Event]] = [
            await stack.enter_async_context(
                subscriptions.job_events(namespace, job, unread.changed)
            )
        ]
        if job is not None:
            reading_pods = subscriptions.pod_events(job, unread.changed)
            readers.append(await stack.enter_async_context(reading_pods))
        troubles = Troubles(*readers)
        while True:
            views = [view(event) for _, event in unread.take() if event is not None]
            for told in in_order(views):
                if told.id > after and name in (None, told.job):
                    yield told
            if (lost := troubles.news()) is not None:
                yield lost
            if await unread.wait(GLANCE_SECONDS):
                await asyncio.sleep(SETTLE_SECONDS)


def oldest_first(jobs: list[Job]) -> list[Job]:
    def age(job: Job) -> tuple[float, str, str]:
        made = job.metadata.creation_timestamp
        return made.timestamp() if made else 0.0, job.namespace, job.name

    return sorted(jobs, key=age)
