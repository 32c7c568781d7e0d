"""What the bodies of known callers hold together while their requests are underway, within bounds.

A body stays in memory from its first byte until its request is answered, and one who has a token
may begin as many as he likes. So each caller has a share and all of them have a whole. The share
gets smaller as the whole fills up: nobody holds more than half of what is left, so that a few who
take all they can still leave something for whoever comes next.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager

from regatta.api.errors import ServerBusy, TooMuchAtOnce

#: Of one caller, over all connections: eight of the largest that a team's server takes.
MOST_OF_ONE = 32 * 1024 * 1024
MOST = 256 * 1024 * 1024
#: A caller's part of what the others have left.
PART = 0.5


class HeldBodies:
    def __init__(self) -> None:
        self._of: Counter[Hashable] = Counter()
        self._all = 0

    def __len__(self) -> int:
        """In bytes."""
        return self._all

    @contextmanager
    def of(self, who: Hashable) -> Iterator[Callable[[int], None]]:
        """For one request: to be told how large its body is by now, or will be. That raises
        TooMuchAtOnce or ServerBusy where so much is not to be had."""
        held = 0

        def hold(size: int) -> None:
            nonlocal held
            if size > held:
                self._take(who, size - held)
                held = size

        try:
            yield hold
        finally:
            self._of[who] -= held
            self._all -= held
            if not self._of[who]:
                del self._of[who]

    def _take(self, who: Hashable, size: int) -> None:
        own = self._of[who]
        if own + size > MOST_OF_ONE:
            raise TooMuchAtOnce(
                "your requests that are not answered yet have bodies of more than "
                f"{MOST_OF_ONE // 2**20} MiB together, which is the most; send fewer at a time"
            )
        if own + size > (MOST - (self._all - own)) * PART:
            raise ServerBusy(
                "the requests of others fill nearly all that this server has for bodies; try again "
                "in a moment"
            )
        self._of[who] += size
        self._all += size
