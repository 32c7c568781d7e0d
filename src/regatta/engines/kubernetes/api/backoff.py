"""How long to wait after the n-th failure in a row."""

from __future__ import annotations

import random
from collections.abc import Callable


class Backoff:
    """Doubles from `first` to `longest`, spread by half so that many do not come back at once."""

    def __init__(
        self,
        first: float,
        longest: float,
        *,
        spread: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self._first = first
        self._longest = longest
        self._spread = spread
        self.failures = 0

    def failed(self) -> float:
        """One more failure: seconds until the next try, never less than `first`."""
        full = self._first * 2.0 ** min(self.failures, 60)
        self.failures += 1
        most = min(full * 1.5, self._longest)
        return max(self._first, self._spread(most / 1.5, most))

    def worked(self) -> None:
        self.failures = 0
