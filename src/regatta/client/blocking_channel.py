"""The way to a server over the standard library's blocking sockets, for start-up time.

Its coroutines never wait for an event loop, so `engines.blocking.Inline` can drive them and the
common commands need not import one.
"""

from __future__ import annotations

import http.client
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

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
from regatta.client.whereabouts import Place, Whereabouts

if TYPE_CHECKING:
    from regatta.client.event_stream import ServerEvent

PART = 1 << 16


class BlockingChannel:
    request_seconds = REQUEST_SECONDS
    silence_seconds = SILENCE_SECONDS

    def __init__(self, where: Whereabouts) -> None:
        self._where = where
        self.url = ""
        #: What the address carries besides: where it is wrong, another server is asked.
        self.prefix = ""

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: object = None,
        timeout: float | None = None,
    ) -> bytes:
        async with self._connected(timeout or self.request_seconds) as (place, connection):
            response = self._sent(place, connection, written(place, method, path, query, body))
            try:
                return response.read()
            except (OSError, http.client.HTTPException) as broken:
                self._where.lost()
                raise Unanswered(f"the answer of {place.url} was cut off: {broken}") from broken

    async def events(
        self, path: str, *, query: Query | None = None, last_id: str = "", again: bool = False
    ) -> AsyncGenerator[ServerEvent, None]:
        from regatta.client.event_stream import EventReader

        async with self._connected(self.silence_seconds, again) as (place, connection):
            request = for_events(written(place, "GET", path, query), last_id)
            response = self._sent(place, connection, request)
            check_streams(place, response.headers.get("Content-Type", ""))
            reader = EventReader()
            while True:
                try:
                    part = response.read1(PART)
                except (OSError, http.client.HTTPException) as broken:
                    self._where.lost()
                    raise ServerUnreachable(
                        f"the connection to {place.url} broke: {broken}"
                    ) from broken
                if not part:
                    return
                for event in reader.feed(part):
                    yield event

    async def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    @asynccontextmanager
    async def _connected(
        self, timeout: float, again: bool = False
    ) -> AsyncIterator[tuple[Place, http.client.HTTPConnection]]:
        place, connection = await reached(
            self._where, lambda: self._find(again), lambda place: _dialled(place, timeout)
        )
        self.url, self.prefix = place.url, place.prefix
        try:
            yield place, connection
        finally:
            connection.close()

    async def _find(self, again: bool) -> Place:
        return self._where.find(again=again)

    def _sent(
        self, place: Place, connection: http.client.HTTPConnection, request: Request
    ) -> http.client.HTTPResponse:
        try:
            connection.request(request.method, request.target, request.payload, request.headers)
            response = connection.getresponse()
        except TimeoutError as slow:
            self._where.lost()
            raise Unanswered(not_in_time(place.url)) from slow
        except (OSError, http.client.HTTPException) as broken:
            self._where.lost()
            from regatta.client.wrong_doors import of_hanging_up

            nobody = Unanswered(f"no server answers at {place.url}: {broken}")
            raise of_hanging_up(place) or nobody from broken
        if response.status >= 400:
            said = b""  # the status alone says enough
            with suppress(OSError, http.client.HTTPException):
                said = response.read()
            raise refused(place.url, response.status, said)
        check_redirect(place, response.status, response.headers.get("Location"))
        return response


async def _dialled(place: Place, timeout: float) -> http.client.HTTPConnection:
    kind = http.client.HTTPSConnection if place.secure else http.client.HTTPConnection
    connection = kind(place.netloc, timeout=timeout)
    try:
        connection.connect()
    except (OSError, UnicodeError, http.client.HTTPException) as broken:
        connection.close()
        nobody = ServerUnreachable(f"no server answers at {place.url}: {broken}")
        if place.secure:
            from regatta.client.wrong_doors import of_handshake

            raise of_handshake(place, broken) or nobody from broken
        raise nobody from broken
    return connection
