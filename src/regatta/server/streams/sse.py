"""Server-sent events: how a stream of an engine goes out over HTTP.

Lines go out in batches (one event for many): one event a line is a hundred times slower. The `id`
of an event is where to go on from, and comes back as `Last-Event-ID`. A comment every few seconds
tells the client that the connection lives.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Any

import msgspec
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from regatta.api.errors import InternalError, RegattaError, ServerUnreachable
from regatta.server.streams.updates import Update, event, event_of

HEARTBEAT_SECONDS = 3.0
#: A refusal that comes this soon has a status of its own; a later one is an event of the stream.
REFUSAL_SECONDS = 0.5

HEARTBEAT = b": still here\n\n"
END = event("end", {})

log = logging.getLogger(__name__)


async def stream(
    source: AsyncGenerator[Update, None], leaving: asyncio.Event, *, ends: bool = False
) -> StreamingResponse:
    """`ends`: the source comes to an end of its own, which is told as `end`. A server that leaves
    says no `end`: the client looks for the next one and goes on."""
    if leaving.is_set():  # still listening, for a moment: nothing that begins now would last
        await source.aclose()
        raise ServerUnreachable("the server is being stopped")
    first = asyncio.ensure_future(anext(source))
    await asyncio.wait({first}, timeout=REFUSAL_SECONDS)
    if first.done() and isinstance(refused := first.exception(), RegattaError):
        await source.aclose()
        raise refused
    return _Stream(source, first, leaving, ends)


class _Stream(StreamingResponse):
    """Starlette leaves a stream whose client has gone to the garbage collector; until that comes it
    would count as open, and keep what it holds."""

    def __init__(
        self,
        source: AsyncGenerator[Update, None],
        first: asyncio.Future[Update],
        leaving: asyncio.Event,
        ends: bool,
    ) -> None:
        self._source, self._first = source, first
        self._events = _events(source, first, leaving, ends)
        super().__init__(
            self._events,
            media_type="text/event-stream",
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._events.aclose()
            # What was never begun closes nothing.
            self._first.cancel()
            with suppress(asyncio.CancelledError, StopAsyncIteration, Exception):
                await self._first
            await self._source.aclose()


async def _events(
    source: AsyncGenerator[Update, None],
    upcoming: asyncio.Future[Update] | None,
    leaving: asyncio.Event,
    ends: bool,
) -> AsyncGenerator[bytes, None]:
    """A heartbeat at once (so that headers travel) and whenever the source is silent."""
    left: asyncio.Future[Any] = asyncio.ensure_future(leaving.wait())
    try:
        yield HEARTBEAT
        while not left.done():
            upcoming = upcoming or asyncio.ensure_future(anext(source))
            either: set[asyncio.Future[Any]] = {upcoming, left}
            done, _ = await asyncio.wait(
                either, timeout=HEARTBEAT_SECONDS, return_when=asyncio.FIRST_COMPLETED
            )
            if upcoming in done:
                finished, upcoming = upcoming, None
                yield event_of(finished.result())
            elif not done:
                yield HEARTBEAT
    except StopAsyncIteration:
        if ends:
            yield END
    except RegattaError as refused:
        yield _told(refused)
    except Exception as broken:
        log.exception("a stream broke")
        yield _told(InternalError(f"the stream broke ({broken!r}); the server's log has more"))
    finally:
        left.cancel()
        if upcoming is not None:
            upcoming.cancel()
            with suppress(asyncio.CancelledError, StopAsyncIteration, Exception):
                await upcoming
        await source.aclose()


def _told(error: RegattaError) -> bytes:
    """The status line has long been sent."""
    body: dict[str, Any] = {"code": error.code, "message": str(error)}
    return event("error", {**body, "problems": msgspec.to_builtins(list(error.problems))})
