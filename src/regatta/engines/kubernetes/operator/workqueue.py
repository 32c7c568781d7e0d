"""Which job to look at next: every key at most once in line, and never by two workers.

A key that is added while a worker has it goes back in line when the worker is done, so that no
change is missed and none is looked at in parallel. `KeyLine` is the rule, without a clock or a
loop; `WorkQueue` lets workers wait for it.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections import deque
from collections.abc import Hashable
from typing import Generic, Protocol, TypeVar

import msgspec

K = TypeVar("K", bound=Hashable)


class QueueSettings(msgspec.Struct, frozen=True, kw_only=True):
    first_retry_seconds: float = 0.005
    longest_retry_seconds: float = 300.0


DEFAULTS = QueueSettings()


class QueueObserver(Protocol):
    """For metrics. All times are seconds."""

    def depth(self, keys: int) -> None: ...

    def waited(self, seconds: float) -> None: ...

    def worked(self, seconds: float) -> None: ...

    def retried(self) -> None: ...


class QueueClosed(Exception):
    """There will be no more keys."""


class KeyLine(Generic[K]):
    """Every key is in at most one place: in line, or with a worker (and perhaps wanted again).
    Beside that it may have one alarm: a time at which it is added."""

    def __init__(self, settings: QueueSettings = DEFAULTS) -> None:
        self._settings = settings
        #: In line, with the time since when.
        self._line: deque[K] = deque()
        self._since: dict[K, float] = {}
        #: With a worker since when, and those of them that are wanted again.
        self._taken: dict[K, float] = {}
        self._wanted: dict[K, float] = {}
        self._alarms: dict[K, float] = {}
        self._clock: list[tuple[float, int, K]] = []
        self._numbers = itertools.count()
        self._failures: dict[K, int] = {}

    def __len__(self) -> int:
        return len(self._line)

    @property
    def busy(self) -> int:
        return len(self._taken)

    def add(self, key: K, now: float) -> None:
        if key in self._taken:
            self._wanted.setdefault(key, now)
        elif key not in self._since:
            self._since[key] = now
            self._line.append(key)

    def add_at(self, key: K, when: float) -> None:
        """The earlier of two alarms counts."""
        if when < self._alarms.get(key, float("inf")):
            self._alarms[key] = when
            heapq.heappush(self._clock, (when, next(self._numbers), key))

    def ring(self, now: float) -> None:
        """Adds the keys whose time has come."""
        while self._clock and self._clock[0][0] <= now:
            when, _, key = heapq.heappop(self._clock)
            if self._alarms.get(key) == when:
                del self._alarms[key]
                self.add(key, now)

    def next_alarm(self) -> float | None:
        while self._clock and self._alarms.get(self._clock[0][2]) != self._clock[0][0]:
            heapq.heappop(self._clock)  # Overtaken by an earlier one.
        return self._clock[0][0] if self._clock else None

    def take(self, now: float) -> tuple[K, float] | None:
        """The next key, and how long it has waited."""
        if not self._line:
            return None
        key = self._line.popleft()
        waited = now - self._since.pop(key)
        self._taken[key] = now
        return key, waited

    def done(self, key: K, now: float) -> float:
        """The worker is through with it, after so many seconds."""
        took = now - self._taken.pop(key)
        if key in self._wanted:
            self._since[key] = self._wanted.pop(key)
            self._line.append(key)
        return took

    def retry_delay(self, key: K) -> float:
        """How long to leave it after one more failure."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        settings = self._settings
        return min(
            settings.first_retry_seconds * 2.0 ** min(failures, 60), settings.longest_retry_seconds
        )

    def failures(self, key: K) -> int:
        return self._failures.get(key, 0)

    def forget(self, key: K) -> None:
        """It worked: the next failure is the first."""
        self._failures.pop(key, None)


class WorkQueue(Generic[K]):
    """For one event loop."""

    def __init__(
        self, settings: QueueSettings = DEFAULTS, *, observer: QueueObserver | None = None
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._line: KeyLine[K] = KeyLine(settings)
        self._observer = observer
        self._idle: deque[asyncio.Future[None]] = deque()
        self._alarm: asyncio.TimerHandle | None = None
        self._closed = False

    def __len__(self) -> int:
        """Keys in line, not counting those with a worker or with an alarm only."""
        return len(self._line)

    @property
    def settled(self) -> bool:
        """Nothing in line and nobody at work; alarms may be set."""
        return not self._line and not self._line.busy

    def add(self, key: K) -> None:
        self._line.add(key, self._loop.time())
        self._changed()

    def add_after(self, key: K, seconds: float) -> None:
        if seconds <= 0:
            self.add(key)
            return
        self._line.add_at(key, self._loop.time() + seconds)
        self._set_alarm()

    def retry(self, key: K) -> float:
        """Adds it after its own growing pause, which is returned."""
        seconds = self._line.retry_delay(key)
        if self._observer is not None:
            self._observer.retried()
        self.add_after(key, seconds)
        return seconds

    def forget(self, key: K) -> None:
        self._line.forget(key)

    def failures(self, key: K) -> int:
        return self._line.failures(key)

    async def get(self) -> K:
        """Waits for a key; `done` must follow. Raises `QueueClosed` after `close`."""
        while True:
            if self._closed:
                raise QueueClosed
            now = self._loop.time()
            taken = self._line.take(now)
            if taken is not None:
                key, waited = taken
                if self._observer is not None:
                    self._observer.depth(len(self._line))
                    self._observer.waited(waited)
                return key
            turn: asyncio.Future[None] = self._loop.create_future()
            self._idle.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn in self._idle:
                    self._idle.remove(turn)
                else:
                    self._changed()  # We were woken for a key that another must now take.
                raise

    def done(self, key: K) -> None:
        took = self._line.done(key, self._loop.time())
        if self._observer is not None:
            self._observer.worked(took)
        self._changed()

    def close(self) -> None:
        self._closed = True
        if self._alarm is not None:
            self._alarm.cancel()
        while self._idle:
            self._wake()

    def _changed(self) -> None:
        if self._observer is not None:
            self._observer.depth(len(self._line))
        if self._line and self._idle:
            self._wake()

    def _wake(self) -> None:
        turn = self._idle.popleft()
        if not turn.done():
            turn.set_result(None)

    def _set_alarm(self) -> None:
        when = self._line.next_alarm()
        if when is None or self._closed:
            return
        if self._alarm is not None:
            if not self._alarm.cancelled() and self._alarm.when() <= when:
                return
            self._alarm.cancel()
        self._alarm = self._loop.call_at(when, self._ring)

    def _ring(self) -> None:
        self._alarm = None
        before = len(self._line)
        self._line.ring(self._loop.time())
        for _ in range(len(self._line) - before):
            self._changed()
        self._set_alarm()
