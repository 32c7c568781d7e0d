"""The engine's one source of time.

`awake` counts the seconds in which this machine was awake and an engine was watching. It goes on
from where the last engine left it, and stands still in between, so that a closed lid or a stopped
server uses up nobody's deadline.
"""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime
from typing import Protocol

from regatta.controller.plan import Instant

#: The engine looks at the clock far more often than this while jobs live. A longer gap means
#: that it was not watching (stopped, swapped out), and only this much of it counts.
LONGEST_GAP = 30.0


class Clock(Protocol):
    def now(self) -> Instant: ...

    def monotonic(self) -> float:
        """For timers inside this process."""
        ...

    def resume(self, awake: float) -> None:
        """Go on from the awake seconds that an earlier engine has counted."""
        ...


class SystemClock:
    def __init__(self) -> None:
        self._awake = 0.0
        self._seen = time.monotonic()
        self._lock = threading.Lock()  # doors ask from their own threads

    def now(self) -> Instant:
        # Linux's CLOCK_MONOTONIC stands still while the machine is suspended.
        with self._lock:
            seen = time.monotonic()
            self._awake += min(max(seen - self._seen, 0.0), LONGEST_GAP)
            self._seen = seen
            return Instant(datetime.now(UTC), self._awake)

    def monotonic(self) -> float:
        return time.monotonic()

    def resume(self, awake: float) -> None:
        with self._lock:
            self._awake = awake
            self._seen = time.monotonic()
