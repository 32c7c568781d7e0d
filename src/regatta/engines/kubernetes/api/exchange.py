"""One request until it is answered: what may safely be tried again is, and every try is counted.

Tried again is only what cannot have had an effect: a 429, a credential that has expired, and
reads. A write that may have happened is the caller's to look at.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager

import msgspec

from regatta.engines.kubernetes.api.answers import Answer
from regatta.engines.kubernetes.api.kube_errors import ApiError, Unreachable, refusal
from regatta.engines.kubernetes.api.transport import Request, Transport, TransportSettings
from regatta.http.wire import Head

#: Verb, resource, HTTP status (0: no answer), seconds. Called once for every attempt.
CallObserver = Callable[[str, str, int, float], None]


class ClientSettings(msgspec.Struct, frozen=True, kw_only=True):
    #: For one attempt, from waiting for a connection to the last byte.
    request_seconds: float = 30.0
    #: How often a 429, or a read that failed, is tried again.
    retries: int = 4
    #: The first pause where the server names none, and the longest we obey.
    retry_seconds: float = 0.2
    longest_retry_seconds: float = 30.0
    page_size: int = 500
    transport: TransportSettings = TransportSettings()


class Exchange:
    def __init__(
        self, transport: Transport, settings: ClientSettings, observer: CallObserver | None
    ) -> None:
        self._transport = transport
        self._settings = settings
        self._observe = observer or (lambda verb, resource, code, seconds: None)

    async def send(self, request: Request, *, again_when_broken: bool) -> Answer:
        renewed = False
        for attempt in range(self._settings.retries + 1):
            last = attempt == self._settings.retries
            began = time.monotonic()
            try:
                head, body = await self._transport.request(request, self._settings.request_seconds)
            except Unreachable:
                self._observe(request.verb, request.resource, 0, time.monotonic() - began)
                if last or not again_when_broken:
                    raise
                await asyncio.sleep(self._pause(attempt))
                continue
            self._observe(request.verb, request.resource, head.status, time.monotonic() - began)
            if head.status < 300:
                return Answer(head.status, head.headers, body)
            refused = _refused(head, body, request)
            if head.status == 401 and not renewed and self._transport.credential_refused():
                renewed = True
                continue
            unavailable = again_when_broken and head.status in (500, 502, 503, 504)
            if last or not (refused.throttled or unavailable):
                raise refused
            await asyncio.sleep(self._pause(attempt, refused.retry_after))
        raise AssertionError("the last attempt returns or raises")

    def _pause(self, attempt: int, asked: float | None = None) -> float:
        """As long as the server said, a little spread, or longer each time."""
        seconds = self._settings.retry_seconds * 2**attempt if asked is None else asked
        return min(seconds, self._settings.longest_retry_seconds) * random.uniform(1.0, 1.2)

    @asynccontextmanager
    async def stream(
        self, request: Request, silence: float | None
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        began = time.monotonic()
        code = 0
        try:
            async with self._transport.stream(
                request, self._settings.request_seconds, silence
            ) as streamed:
                code = streamed.status
                if code >= 300:
                    if code == 401:
                        self._transport.credential_refused()
                    head = Head(code, streamed.headers)
                    raise _refused(head, await streamed.whole(), request)
                self._observe(request.verb, request.resource, code, time.monotonic() - began)
                began = -1.0
                async with aclosing(streamed.parts()) as parts:
                    yield parts
        finally:
            if began >= 0:
                self._observe(request.verb, request.resource, code, time.monotonic() - began)


def _refused(head: Head, body: bytes, request: Request) -> ApiError:
    error = refusal(head.status, body, request.asked)
    after = head.headers.get("retry-after", "")
    if after.isdigit():
        error.retry_after = float(after)
    return error
