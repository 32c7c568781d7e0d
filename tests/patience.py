"""How long a test waits: as long as what it waits for gets on, however slow the machine is.

A fixed number of seconds is a guess about a machine's speed. Here time counts only while nothing
moves, and of the time between two looks only so much: a test that did not get to look has not
waited.
"""

from __future__ import annotations

import time
from collections.abc import Callable

#: Seconds of all that a wait may take, for what moves for ever and never arrives.
LONGEST_SECONDS = 600.0
#: Most that one pause between two looks counts for.
_MOST_PER_LOOK = 1.0
#: Seconds between questions whether anything has moved, which may be dear.
_BETWEEN_MARKS = 2.0


class Patience:
    def __init__(
        self,
        still_seconds: float,
        moves: Callable[[], object] = lambda: None,
        *,
        longest_seconds: float = LONGEST_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`moves`: something that differs from what it was whenever things get on."""
        self._still_seconds = still_seconds
        self._moves = moves
        self._longest = max(longest_seconds, still_seconds)
        self._clock = clock
        self._began = self._last = clock()
        self._still = self._asked_at = 0.0
        self._mark: object = None

    @property
    def over(self) -> bool:
        """Asked at each look that was in vain."""
        now = self._clock()
        self._still += min(now - self._last, _MOST_PER_LOOK)
        self._last = now
        if now - self._began > self._longest:
            return True
        if self._still > self._still_seconds or self._still - self._asked_at > _BETWEEN_MARKS:
            self._renew()
        return self._still > self._still_seconds

    def _renew(self) -> None:
        self._asked_at = self._still
        mark = self._moves()
        if mark != self._mark:
            self._mark = mark
            self._still = self._asked_at = 0.0

    def __str__(self) -> str:
        """How long it was, for the failure that tells of it."""
        took = self._clock() - self._began
        return f"{took:.0f} s, the last {self._still:.0f} without anything that moved"
