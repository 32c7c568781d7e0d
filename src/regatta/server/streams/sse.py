"""Server-sent events: how they are written, and how blocking sources feed them.

Lines go out in batches (one event for many): one event a line is a hundred times slower. Each
batch's `id` is where to go on from, and comes back as `Last-Event-ID`. A comment every few
seconds tells the client that the connection lives.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import suppress
from typing import Any, TypeVar

import msgspec
from starlette.responses import StreamingResponse

HEARTBEAT_SECONDS = 3.0
#: Batches that may wait for a slow reader before its source is held.
BACKLOG = 16

T = TypeVar("T")


def event(kind: str, data: Any, id: str | None = None) -> bytes:
    head = f"event: {kind}\n" if id is None else f"event: {kind}\nid: {id}\n"
    # JSON has no raw newline, so one data line holds everything.
    return head.encode() + b"data: " + msgspec.json.encode(data) + b"\n\n"


HEARTBEAT = b": still here\n\n"
END = event("end", {})


def stream(source: AsyncIterator[bytes]) -> StreamingResponse:
    return StreamingResponse(
        with_heartbeat(source),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


async def with_heartbeat(source: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """A heartbeat at once (so that headers travel) and whenever the source is silent."""
    yield HEARTBEAT
    upcoming: asyncio.Future[bytes] | None = None
    try:
        while True:
            upcoming = upcoming or asyncio.ensure_future(anext(source))
            done, _ = await asyncio.wait({upcoming}, timeout=HEARTBEAT_SECONDS)
            if not done:
                yield HEARTBEAT
                continue
            finished, upcoming = upcoming, None
            try:
                yield finished.result()
            except StopAsyncIteration:
                return
    finally:
        if upcoming is not None:
            upcoming.cancel()
            with suppress(asyncio.CancelledError, StopAsyncIteration):
                await upcoming
        if (close := getattr(source, "aclose", None)) is not None:
            await close()


async def merged(*sources: AsyncIterator[T]) -> AsyncIterator[T]:
    """Items of all sources as they come, until the first source ends."""
    waiting = {asyncio.ensure_future(anext(source)): source for source in sources}
    try:
        while True:
            done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for ready in done:
                source = waiting.pop(ready)
                try:
                    item = ready.result()
                except StopAsyncIteration:
                    if source is sources[0]:
                        return
                    continue
                waiting[asyncio.ensure_future(anext(source))] = source
                yield item
    finally:
        for future in waiting:
            future.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        for source in sources:
            if (close := getattr(source, "aclose", None)) is not None:
                await close()


async def from_thread(iterator: Iterator[T]) -> AsyncGenerator[T, None]:
    """A blocking iterator's items, read by a thread of its own.

    Not by the pool's: a hundred followers would leave it nobody to answer a `get`. The iterator
    is run and closed in that one thread. It must yield now and then (an empty item will do), or
    the thread would not notice that its reader has gone.
    """
    loop = asyncio.get_running_loop()
    arrived: asyncio.Queue[T | BaseException | None] = asyncio.Queue()
    room = threading.Semaphore(BACKLOG)
    abandoned = threading.Event()

    def hand(item: T | BaseException | None) -> None:
        with suppress(RuntimeError):  # the loop has ended: nobody reads any more
            loop.call_soon_threadsafe(arrived.put_nowait, item)

    def pump() -> None:
        try:
            try:
                for item in iterator:
                    while not room.acquire(timeout=0.5):
                        if abandoned.is_set():
                            return
                    if abandoned.is_set():
                        return
                    hand(item)
            finally:
                if (close := getattr(iterator, "close", None)) is not None:
                    close()
        except Exception as error:  # noqa: BLE001 - raised again where the items are read
            hand(error)
        else:
            hand(None)

    threading.Thread(target=pump, name="follower", daemon=True).start()
    try:
        while (item := await arrived.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            room.release()
            yield item
    finally:
        abandoned.set()
