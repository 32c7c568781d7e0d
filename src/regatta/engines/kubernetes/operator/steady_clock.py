"""The operator's source of time: what a person who sets a node's clock does not change.

Deadlines are counted by `awake`, which begins at the wall's time, so that another operator can go
on with what this one wrote, and then goes as steadily as the machine does. A clock that is set
while no operator runs is taken for time that has passed: nobody was there who could know better.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime

from regatta.controller.plan import Instant


def wall_clock() -> datetime:
    return datetime.now(UTC)


class SteadyClock:
    def __init__(
        self,
        monotonic: Callable[[], float] = time.monotonic,
        wall: Callable[[], datetime] = wall_clock,
    ) -> None:
        self._monotonic = monotonic
        self._wall = wall
        self._began = wall().timestamp() - monotonic()

    def now(self) -> Instant:
        return Instant(self._wall(), self._began + self._monotonic())
