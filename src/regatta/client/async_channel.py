"""The way to a server on an event loop: for programs that do other things meanwhile.

A caller that is cancelled closes its connection at once.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress

from regatta.api.errors import ServerUnreachable, Unanswered
from regatta.client.channel import (
    REQUEST_SECONDS,
    SILENCE_SECONDS,
    Query,
    Request,
    check_redirect,
    check_streams,
    for_events,
    not_in_time,
    reached,
    refused,
    written,
)
from regatta.client.event_stream import EventReader, ServerEvent
from regatta.client.whereabouts import Place, Whereabouts
from regatta.client.wrong_doors import of_handshake, of_hanging_up
from regatta.engines.upcoming import next_of
from regatta.http.dial import Dialler
from regatta.http.failures import HttpError
from regatta.http.wire import Connection, Head


class AsyncChannel:
    request_seconds = REQUEST_SECONDS
    silence_seconds = SILENCE_SECONDS

    def __init__(self, where: Whereabouts) -> None:
        self._where = where
        self._tls: ssl.SSLContext | None = None
        self.url = ""

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: object = None,
        timeout: float | None = None,
    ) -> bytes:
        seconds = timeout or self.request_seconds
        async with self._connected(seconds) as (place, connection):
            request = written(place, method, path, query, body)
            async with self._answer(place, seconds, f"the answer of {place.url} was cut off"):
                head = await self._sent(place, connection, request)
                return await connection.body(head)

    async def events(
        self, path: str, *, query: Query | None = None, last_id: str = "", again: bool = False
    ) -> AsyncGenerator[ServerEvent, None]:
        async with self._connected(self.silence_seconds, again) as (place, connection):
            request = for_events(written(place, "GET", path, query), last_id)
            nobody = f"no server answers at {place.url}"
            async with self._answer(place, self.silence_seconds, nobody):
                head = await self._sent(place, connection, request)
            check_streams(place, head.headers.get("content-type", ""))
            reader = EventReader()
            async with aclosing(connection.parts(head)) as parts:
                while True:
                    try:
                        async with asyncio.timeout(self.silence_seconds):
                            part = await next_of(parts)
                    except (TimeoutError, HttpError) as broken:
                        self._where.lost()
                        why = str(broken) or "timed out"
                        raise ServerUnreachable(
                            f"the connection to {place.url} broke: {why}"
                        ) from broken
                    if part is None:
                        return
                    for event in reader.feed(part):
                        yield event

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    @asynccontextmanager
    async def _connected(
        self, seconds: float, again: bool = False
    ) -> AsyncIterator[tuple[Place, Connection]]:
        place, connection = await reached(
            self._where, lambda: self._find(again), lambda place: self._dialled(place, seconds)
        )
        self.url = place.url
        try:
            yield place, connection
        finally:
            connection.close()

    @asynccontextmanager
    async def _answer(self, place: Place, seconds: float, broken: str) -> AsyncIterator[None]:
        """Of a request that went out: late, or `broken`, it may have been done all the same."""
        try:
            async with asyncio.timeout(seconds):
                yield
        except TimeoutError as slow:
            self._where.lost()
            raise Unanswered(not_in_time(place.url)) from slow
        except HttpError as why:
            self._where.lost()
            wrong = await asyncio.to_thread(of_hanging_up, place)
            raise wrong or Unanswered(f"{broken}: {why}") from why

    async def _find(self, again: bool) -> Place:
        known = self._where.known
        if known is not None:
            return known
        # Looking for this machine's server, or starting it, blocks.
        return await asyncio.to_thread(self._where.find, again=again)

    async def _dialled(self, place: Place, seconds: float) -> Connection:
        if place.secure and self._tls is None:
            self._tls = await asyncio.to_thread(ssl.create_default_context)
        try:
            async with asyncio.timeout(seconds):
                return await Dialler(place.url).dial(self._tls if place.secure else None)
        except (TimeoutError, HttpError) as broken:
            why = broken.__cause__ or str(broken) or "timed out"
            nobody = ServerUnreachable(f"no server answers at {place.url}: {why}")
            raise of_handshake(place, broken.__cause__) or nobody from broken

    async def _sent(self, place: Place, connection: Connection, request: Request) -> Head:
        headers = {"Host": place.netloc, "Connection": "close", **request.headers}
        head = await connection.send(
            request.method, request.target, list(headers.items()), request.payload or b""
        )
        if head.status >= 400:
            said = b""  # the status alone says enough
            with suppress(HttpError):
                said = await connection.body(head)
            raise refused(place.url, head.status, said)
        check_redirect(place, head.status, head.headers.get("location"))
        return head
