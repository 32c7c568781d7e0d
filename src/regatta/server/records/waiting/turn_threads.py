"""Threads in which a database is asked, and who waits for one of them.

A database that is away is found out by whoever has a thread, and takes its time. Those who waited
for a thread meanwhile are told the same at once: each in turn, they would wait for minutes.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from regatta.api.errors import RecordsAway

T = TypeVar("T")


class TurnThreads:
    def __init__(self, count: int, name: str) -> None:
        self._threads = ThreadPoolExecutor(count, thread_name_prefix=name)
        #: When the database was last found away, and what was said of it; when it last answered.
        self._away_at, self._said = 0.0, ""
        self._answered_at = 0.0

    async def call(self, work: Callable[[], T]) -> T:
        """Raises RecordsAway, and what `work` raises."""
        loop, asked = asyncio.get_running_loop(), time.monotonic()
        return await loop.run_in_executor(self._threads, self._in_turn, asked, work)

    def close(self) -> None:
        """What has begun is finished first."""
        self._threads.shutdown()

    def _in_turn(self, asked: float, work: Callable[[], T]) -> T:
        if self._away_at > max(asked, self._answered_at):
            raise RecordsAway(self._said)
        try:
            found = work()
        except RecordsAway as away:
            self._said, self._away_at = str(away), time.monotonic()
            raise
        except Exception:  # of the database's, or of what it answered
            self._answered_at = time.monotonic()
            raise
        self._answered_at = time.monotonic()
        return found
