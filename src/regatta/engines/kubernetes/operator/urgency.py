"""When a status that can wait is written, so that all of them together are no burden.

A status write costs an API server as much as five pods: it checks the whole job against its
schema. So what `controller.memory` says is only for show is written at most once a second, and a
starting job's pods come first.
"""

from __future__ import annotations

import random

#: How often what can wait is brought up to date.
EVERY = 1.0
#: The same when there is more to do than the API server takes at once.
BUSY_EVERY = 5.0
#: Seconds between two such writes, over all jobs: a fifth of one processor of the API server.
APART = 0.05


class Pace:
    def __init__(self) -> None:
        self._next = 0.0

    def wait(
        self, written_at: float, now: float, *, busy: bool, eager: bool = False
    ) -> float | None:
        """Seconds to look again after, or None to write now. `eager`: people wait for this one."""
        age = now - written_at
        if age < EVERY:
            return EVERY - age
        if age < BUSY_EVERY and (busy or (not eager and now < self._next)):
            return EVERY * random.uniform(0.5, 1.0)
        self._next = max(self._next, now) + APART
        return None
