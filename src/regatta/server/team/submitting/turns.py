"""One at a time, or a few, by key: whoever changes a job waits for whoever hands it in.

There is one server on a database (`records/single_server`), so turns need be taken here alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Hashable
from contextlib import asynccontextmanager


class Turns:
    def __init__(self, at_once: int = 1) -> None:
        self._at_once = at_once
        #: Only of keys that somebody has, or waits for: how many those are.
        self._locks: dict[Hashable, tuple[asyncio.Semaphore, int]] = {}

    @asynccontextmanager
    async def of(self, key: Hashable) -> AsyncGenerator[None, None]:
        lock, wanted = self._locks.get(key, (asyncio.Semaphore(self._at_once), 0))
        self._locks[key] = (lock, wanted + 1)
        try:
            async with lock:
                yield
        finally:
            lock, wanted = self._locks.pop(key)
            if wanted > 1:
                self._locks[key] = (lock, wanted - 1)

    def wanted(self, key: Hashable) -> int:
        """By how many, those who have it among them."""
        return self._locks[key][1] if key in self._locks else 0

    def __len__(self) -> int:
        return len(self._locks)
