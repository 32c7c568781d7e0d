"""What changed, for whoever watches: so that a change costs its watchers what changed, however
many jobs there are.

Every transaction that changed something has a version, and the feed remembers which jobs each of
the last few thousand touched. A watcher that was away for longer looks at everything once.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from contextlib import suppress

#: Versions that are remembered; a busy server makes some hundreds in a second.
KEPT = 10_000


class Feed:
    """Told by writers' threads, asked from threads and from event loops."""

    def __init__(self, version: int) -> None:
        self._version = version
        #: How far our versions are ahead of the store's.
        self._ahead = 0
        #: All that was touched after this version is known.
        self._known_after = version
        self._touched: deque[tuple[int, frozenset[str]]] = deque()
        self._changed = threading.Condition()
        #: One for all who wait in a loop; rung once.
        self._bells: dict[asyncio.AbstractEventLoop, asyncio.Event] = {}

    @property
    def version(self) -> int:
        return self._version

    def tell(self, version: int, jobs: frozenset[str]) -> None:
        """After the commit of `version`, which changed these jobs themselves (not only their pods
        or events)."""
        with self._changed:
            self._tell(version + self._ahead, jobs)

    def tell_unwritten(self, jobs: frozenset[str]) -> None:
        """These jobs look different from now on, though nothing was written."""
        with self._changed:
            self._ahead += 1
            self._tell(self._version + 1, jobs)

    def _tell(self, version: int, jobs: frozenset[str]) -> None:
        with self._changed:
            if version <= self._version:
                return
            self._version = version
            if jobs:
                self._touched.append((version, jobs))
            while len(self._touched) > KEPT:
                self._known_after, _ = self._touched.popleft()
            self._changed.notify_all()
            bells, self._bells = self._bells, {}
        for loop, bell in bells.items():
            with suppress(RuntimeError):  # that loop has ended
                loop.call_soon_threadsafe(bell.set)

    def since(self, version: int) -> tuple[int, set[str] | None]:
        """The present version, and the jobs touched after `version`; None: it is too long ago."""
        with self._changed:
            if version < self._known_after:
                return self._version, None
            jobs: set[str] = set()
            for number, touched in reversed(self._touched):
                if number <= version:
                    break
                jobs |= touched
            return self._version, jobs

    def wait(self, version: int, timeout: float) -> int:
        """The present version: at once where it is later than `version`, else on the next change
        or when `timeout` seconds are over. Blocks."""
        with self._changed:
            self._changed.wait_for(lambda: self._version > version, timeout)
            return self._version

    async def moved(self, version: int, timeout: float) -> int:
        """As `wait`, in an event loop."""
        with self._changed:
            if self._version > version:
                return self._version
            bell = self._bells.setdefault(asyncio.get_running_loop(), asyncio.Event())
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await bell.wait()
        return self._version
