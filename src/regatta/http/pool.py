"""Connections that wait for their next request.

Bounded by its users: it keeps what they give back, and they hold as many as they ask for at once.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable

from regatta.http.dial import Dialler
from regatta.http.wire import Connection


class Pool:
    def __init__(
        self,
        dialler: Dialler,
        *,
        #: Servers close what has idled for too long: we must be first, or a write meets a dead
        #: line.
        idle_seconds: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.dialler = dialler
        self._idle_seconds = idle_seconds
        self._clock = clock
        self._idle: list[Connection] = []

    def __len__(self) -> int:
        """How many wait."""
        return len(self._idle)

    async def take(self, context: ssl.SSLContext | None = None) -> Connection:
        """One made of this very context: with another, we would be somebody else."""
        return self.waiting(context) or await self.dialler.dial(context)

    def waiting(self, context: ssl.SSLContext | None = None) -> Connection | None:
        """The one that was used last, so that the others may grow old and go."""
        now = self._clock()
        while self._idle:
            connection = self._idle.pop()
            fresh = now - connection.idle_since < self._idle_seconds
            if fresh and connection.usable and connection.context is context:
                return connection
            connection.close()
        return None

    def give_back(self, connection: Connection) -> None:
        """After a request, however it went: what cannot serve again is closed."""
        if connection.usable:
            connection.idle_since = self._clock()
            self._idle.append(connection)
        else:
            connection.close()

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()
