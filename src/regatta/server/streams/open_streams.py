"""Streams of a team's server: only so many for each account, and each only as long as whoever
opened it may still hear it.

A stream has no end of its own, and each costs something at every change, so one account must not
hold hundreds. And what an admin changes holds for streams as well: who is disabled, signs out or
sees other people's jobs now is not told on.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

from regatta.server.openpai_errors import TooManyRequests

#: Of one account, over all its clients.
MOST_STREAMS = 64
#: Between two looks at whether a stream may go on.
LOOK_SECONDS = 5.0

T = TypeVar("T")


class OpenStreams:
    def __init__(self, most: int = MOST_STREAMS) -> None:
        self._most = most
        self._open: Counter[int] = Counter()

    @contextmanager
    def one_more(self, user_id: int) -> Iterator[None]:
        """Raises TooManyRequests."""
        if self._open[user_id] >= self._most:
            raise TooManyRequests(
                f"you have {self._most} streams of logs, changes and events open, which is the "
                "most; close some",
                5,
            )
        self._open[user_id] += 1
        try:
            yield
        finally:
            self._open[user_id] -= 1
            if not self._open[user_id]:
                del self._open[user_id]


async def while_allowed(
    source: AsyncGenerator[T, None],
    may_go_on: Callable[[], Awaitable[bool]],
    every: float | None = None,
) -> AsyncGenerator[T, None]:
    """What the source tells, until `may_go_on` says no, or raises: then it ends there. `every`: how
    often it is asked, in seconds."""
    every = LOOK_SECONDS if every is None else every
    upcoming: asyncio.Future[T] | None = None
    looked = time.monotonic()
    try:
        while True:
            upcoming = upcoming or asyncio.ensure_future(anext(source))
            left = max(0.0, looked + every - time.monotonic())
            await asyncio.wait({upcoming}, timeout=left)
            if time.monotonic() - looked >= every:
                if not await may_go_on():
                    return
                looked = time.monotonic()
            if upcoming.done():
                finished, upcoming = upcoming, None
                try:
                    yield finished.result()
                except StopAsyncIteration:
                    return
    finally:
        if upcoming is not None:
            upcoming.cancel()
            with suppress(asyncio.CancelledError, StopAsyncIteration, Exception):
                await upcoming
        await source.aclose()
