"""An event loop in a thread of its own, for callers that are not asynchronous."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator, Coroutine, Generator
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class LoopThread:
    """A `Runner` (`engines/blocking.py`)."""

    def __init__(self) -> None:
        self._closing = False
        self._open_streams: set[AsyncGenerator[Any, None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="engine", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        asked: Future[T] | None = None
        try:
            asked = asyncio.run_coroutine_threadsafe(work, self._loop)
            return asked.result()
        except KeyboardInterrupt:
            if asked is not None:
                asked.cancel()
            else:
                with contextlib.suppress(RuntimeError):  # the loop is closed
                    self._loop.call_soon_threadsafe(_give_up, work)
            raise

    def stream(self, source: AsyncGenerator[T, None]) -> Generator[T, None, None]:
        self._open_streams.add(source)
        try:
            while True:
                try:
                    yield self.run(self._next(source))
                except StopAsyncIteration:
                    return
        finally:
            if not self._closing:
                self._open_streams.discard(source)
                self.run(_closed(source))

    def close(self, farewell: Coroutine[Any, Any, None] | None = None) -> None:
        if self._closing:
            if farewell is not None:
                farewell.close()
            return
        self._closing = True  # streams end by being cancelled from here on
        with contextlib.suppress(Exception):
            self.run(self._leave())
        if farewell is not None:
            with contextlib.suppress(Exception):
                self.run(farewell)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        if not self._thread.is_alive():
            self._loop.close()

    async def _leave(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        # From the outside in, one by one: each closes those that it reads from.
        for source in list(self._open_streams):
            await _closed(source)

    async def _next(self, source: AsyncGenerator[T, None]) -> T:
        if self._closing:  # asked by a thread that has not noticed yet
            raise StopAsyncIteration
        return await anext(source)


def _give_up(work: Coroutine[Any, Any, Any]) -> None:
    """Whether work was handed over when its caller was interrupted is known in the loop alone."""
    begun = [task for task in asyncio.all_tasks() if task.get_coro() is work]
    for task in begun:
        task.cancel()
    if not begun:
        work.close()


async def _closed(source: AsyncGenerator[Any, None]) -> None:
    for _ in range(100):
        try:
            await source.aclose()
            return
        except RuntimeError:  # whoever read it was interrupted, and is still leaving
            await asyncio.sleep(0.01)
