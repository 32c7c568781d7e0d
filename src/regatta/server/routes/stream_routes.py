"""Logs, events and job status, as they happen."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query
from starlette.responses import Response

from regatta.api.errors import BadRequest
from regatta.engines.base import LogQuery
from regatta.engines.inventory import EventView
from regatta.engines.logs.positions import decode_position
from regatta.server.responses import items
from regatta.server.routes.answers_in_turn import Turn
from regatta.server.routes.engine_of import AskedEngine
from regatta.server.routes.job_routes import JOB
from regatta.server.routes.query_times import NOT_A_NUMBER
from regatta.server.schemas import EventStream, answers, items_of
from regatta.server.streams import sse

#: Of events: what a database can count.
LARGEST_ID = 2**63 - 1
#: Lines, and replicas.
MOST = 10**9


def _last_event_id(pattern: str) -> Any:
    """Where to go on from. Described alone: whoever reads it has a sentence for a mistake."""
    return Header(alias="Last-Event-ID", json_schema_extra={"pattern": pattern})


Since = Annotated[datetime | None, NOT_A_NUMBER]
AfterEvent = Annotated[str, _last_event_id("^[0-9]{0,18}$")]
AfterLines = Annotated[str, _last_event_id("^([^=;]+=[^;]+(;[^=;]+=[^;]+)*)?$")]


def stream_routes(leaving: asyncio.Event) -> APIRouter:
    """`leaving` ends every stream: the server is about to stop."""
    routes = APIRouter(tags=["streams"])

    @routes.get("/watch", response_class=EventStream, responses=answers({}, streams=True))
    async def watch(
        engine: AskedEngine, namespace: str | None = None, name: str | None = None
    ) -> Response:
        """Server-sent events: `job` for each job as it is now, `synced`, then `job` and `gone`."""
        return await sse.stream(engine.watch(namespace, name), leaving)

    @routes.get("/events", responses=answers({200: items_of(EventView)}, streams=True))
    async def events(
        engine: AskedEngine,
        take_turn: Turn,
        namespace: str | None = None,
        job: str | None = None,
        uid: str = "",
        after: Annotated[int, Query(ge=0, le=LARGEST_ID)] = 0,
        follow: bool = False,
        last_event_id: AfterEvent = "",
    ) -> Response:
        """A list, or with `follow` server-sent events named `event` whose ids resume."""
        if uid and job is None:
            raise BadRequest("uid: is that of a run of a job; name the job with it, job=NAME")
        if last_event_id:
            after = _event_id(last_event_id)
        if not follow:
            await take_turn()
            return await items(await engine.events(namespace, job, after, uid))
        return await sse.stream(engine.follow_events(namespace, job, after), leaving)

    @routes.get(JOB + "/logs", response_class=EventStream, responses=answers({}, streams=True))
    async def logs(
        engine: AskedEngine,
        namespace: str,
        name: str,
        uid: str = "",
        role: str | None = None,
        index: Annotated[int | None, Query(ge=0, le=MOST)] = None,
        previous: bool = False,
        attempt: Annotated[int | None, Query(ge=0, le=MOST)] = None,
        since: Since = None,
        tail: Annotated[int | None, Query(ge=0, le=MOST)] = None,
        grep: str | None = None,
        follow: bool = False,
        status: bool = False,
        last_event_id: AfterLines = "",
    ) -> Response:
        """Server-sent events: `lines` ([[replica, time, stream, text], ...]), `remark`, with
        `status` also `job` whenever it changed, and `end` when nothing more can come."""
        after = decode_position(last_event_id)
        query = LogQuery(
            uid=uid,
            role=role,
            index=index,
            previous=previous,
            attempt=attempt,
            since=since,
            tail=None if after else tail,  # what is resumed has been cut already
            grep=grep,
            after=after,
        )
        if follow:
            source = engine.follow(namespace, name, query, status=status)
            return await sse.stream(source, leaving, ends=True)
        return await sse.stream(engine.logs(namespace, name, query), leaving, ends=True)

    return routes


def _event_id(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 20 and int(text) <= LARGEST_ID):
        raise BadRequest(f"Last-Event-ID is {text!r}; it must be the id of an event, a number")
    return int(text)
