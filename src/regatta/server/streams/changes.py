"""One thread waits for the engine to change; every watcher waits here, for free.

Followers would otherwise each block a thread of the pool that answers requests.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress

from regatta.engines.base import Engine


class Changes:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._version = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._moved = asyncio.Event()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._wait, name="changes", daemon=True)

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    def leave(self) -> None:
        """The server is about to stop: every follower is to end its stream now."""
        self._closed.set()
        self._moved.set()

    async def close(self) -> None:
        self.leave()
        await asyncio.to_thread(self._thread.join)

    @property
    def closing(self) -> bool:
        return self._closed.is_set()

    @property
    def version(self) -> int:
        return self._version

    async def after(self, version: int, timeout: float) -> int:
        """The present version: at once when it is later than `version`, else on the next change
        or when `timeout` seconds are over."""
        if self._version == version and not self.closing:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._moved.wait(), timeout)
        return self._version

    def _wait(self) -> None:
        assert self._loop is not None
        version = 0
        while not self._closed.is_set():
            latest = self._engine.wait_for_change(version, 0.5)
            if latest != version:
                version = latest
                with suppress(RuntimeError):  # the loop has ended before us
                    self._loop.call_soon_threadsafe(self._announce, latest)

    def _announce(self, version: int) -> None:
        self._version = version
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()
