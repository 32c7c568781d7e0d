"""Logs, events and job status, as they happen."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Header, Query
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from regatta.api.errors import BadRequest, RegattaError
from regatta.engines.base import Engine, LogQuery
from regatta.server.responses import items
from regatta.server.routes.job_routes import JOB
from regatta.server.streams import sse
from regatta.server.streams.changes import Changes
from regatta.server.streams.positions import decode_position
from regatta.server.streams.sources import follow_status, log_lines, watch_jobs

log = logging.getLogger(__name__)

LastEventId = Annotated[str | None, Header(alias="Last-Event-ID")]


def stream_routes(engine: Engine, changes: Changes) -> APIRouter:
    routes = APIRouter(tags=["streams"])

    @routes.get("/watch")
    async def watch(namespace: str | None = None, name: str | None = None) -> Response:
        """Server-sent events: `job` for each job as it is now, `synced`, then `job` and `gone`."""
        return sse.stream(watch_jobs(engine, changes, namespace, name))

    @routes.get("/events")
    async def events(
        namespace: str | None = None,
        job: str | None = None,
        after: int = 0,
        follow: bool = False,
        last_event_id: LastEventId = None,
    ) -> Response:
        """A list, or with `follow` server-sent events named `event` whose ids resume."""
        if last_event_id is not None:
            after = _event_id(last_event_id)
        if not follow:
            return items(await run_in_threadpool(engine.events, namespace, job, after))
        return sse.stream(_events(engine, changes, namespace, job, after))

    @routes.get(JOB + "/logs")
    async def logs(
        namespace: str,
        name: str,
        role: str | None = None,
        index: int | None = None,
        previous: bool = False,
        since: datetime | None = None,
        tail: Annotated[int | None, Query(ge=0)] = None,
        grep: str | None = None,
        follow: bool = False,
        status: bool = False,
        last_event_id: LastEventId = None,
    ) -> Response:
        """Server-sent events: `lines` ([[replica, time, stream, text], ...]), with `status` also
        `job` whenever it changed, and `end` when nothing more can come."""
        after = decode_position(last_event_id or "")
        query = LogQuery(
            role=role,
            index=index,
            previous=previous,
            since=since,
            tail=None if after else tail,  # what is resumed has been cut already
            grep=grep,
            follow=follow,
            after=after,
        )
        # Asked for before the stream begins, so that a refusal has a status of its own.
        batches = await run_in_threadpool(engine.logs, namespace, name, query)
        source = log_lines(batches, changes)
        if status:
            source = sse.merged(source, follow_status(engine, changes, namespace, name))
        return sse.stream(_ended(source, engine, changes, namespace, name, status))

    return routes


async def _ended(
    source: AsyncIterator[bytes],
    engine: Engine,
    changes: Changes,
    namespace: str,
    name: str,
    status: bool,
) -> AsyncIterator[bytes]:
    """The source, and after it the last word: the job as it ended, and `end`.

    A server that is leaving says no `end`: the client looks for the next one and goes on. What
    breaks in the middle is told as an `error` event, as the status line has long been sent.
    """
    try:
        async for chunk in source:
            yield chunk
    except RegattaError as refused:
        yield sse.event("error", {"code": refused.code, "message": str(refused)})
        return
    except Exception as broken:
        log.exception("the log stream of %s/%s broke", namespace, name)
        message = f"the logs cannot be read ({broken!r}); the server's log has the details"
        yield sse.event("error", {"code": "InternalError", "message": message})
        return
    if changes.closing:
        return
    if status:
        async for chunk in follow_status(engine, changes, namespace, name, once=True):
            yield chunk
    yield sse.END


async def _events(
    engine: Engine, changes: Changes, namespace: str | None, job: str | None, after: int
) -> AsyncIterator[bytes]:
    version = -1
    while not changes.closing:
        version = await changes.after(version, sse.HEARTBEAT_SECONDS)
        for found in await run_in_threadpool(engine.events, namespace, job, after):
            after = max(after, found.id)
            yield sse.event("event", found, str(found.id))
        await asyncio.sleep(0.05)


def _event_id(text: str) -> int:
    if not text.isdigit():
        raise BadRequest(f"Last-Event-ID is {text!r}; it must be the id of an event, a number")
    return int(text)
