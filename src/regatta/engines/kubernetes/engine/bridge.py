"""The client's event loop in a thread of its own, for callers that are not asynchronous."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from concurrent.futures import Future
from typing import Any, TypeVar

from regatta.engines.kubernetes.access.config import ClusterAccess
from regatta.engines.kubernetes.api.client import ClientSettings, KubeClient
from regatta.engines.kubernetes.api.errors import KubeError
from regatta.engines.kubernetes.engine.refusals import explained

T = TypeVar("T")

#: Somebody waits at a terminal: a cluster that is away should be told so soon.
SETTINGS = ClientSettings(retries=2)

# Informers say on their log what a stream tells as `Lost`; a terminal need not see it twice.
logging.getLogger("regatta.engines.kubernetes").addHandler(logging.NullHandler())


class Bridge:
    def __init__(self, access: ClusterAccess) -> None:
        self._access = access
        self._closing = False
        self._open_streams: set[AsyncGenerator[Any, None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="cluster", daemon=True)
        self._thread.start()
        self._client = self._run(self._connect())

    async def _connect(self) -> KubeClient:
        return KubeClient(self._access, SETTINGS)

    def call(self, ask: Callable[[KubeClient], Coroutine[Any, Any, T]]) -> T:
        """One exchange with the cluster; its refusals come as the errors that doors know."""
        try:
            return self._run(ask(self._client))
        except KubeError as trouble:
            raise explained(trouble, self._access) from trouble

    def stream(self, open_stream: Callable[[KubeClient], AsyncGenerator[T, None]]) -> Iterator[T]:
        """Items as they come. A reader who is slow holds the stream back."""
        source = open_stream(self._client)
        self._open_streams.add(source)
        try:
            while True:
                try:
                    yield self._run(self._next(source))
                except StopAsyncIteration:
                    return
                except KubeError as trouble:
                    raise explained(trouble, self._access) from trouble
        finally:
            if not self._closing:
                self._open_streams.discard(source)
                self._run(_closed(source))

    def close(self) -> None:
        if self._closing:
            return
        self._closing = True  # streams end by being cancelled from here on
        with contextlib.suppress(Exception):
            self._run(self._leave())
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
        await self._client.close()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
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
