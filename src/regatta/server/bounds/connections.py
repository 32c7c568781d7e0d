"""Connections, within bounds: who has not shown the token yet holds little, and not for long.

A loopback port is open to every user of this machine. One who opens connections and never finishes
a request must not keep the owner out, so a connection that has not sent a whole request with the
right token is a stranger: there are only so many, the oldest is turned out for the next, and all
are turned out after a while. So is whoever takes nothing more of what they are sent.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import struct
import time
from collections.abc import Callable
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from regatta.server.bounds.answers_in_pieces import InPieces

#: For a whole request with its headers and the right token, without the time that its answer takes
#: us. Also for the next one of a connection.
REQUEST_SECONDS = 10.0
#: Without a byte of a body that was announced.
BODY_SECONDS = 30.0
#: For all of a body: so long, and what has come of it at the slowest rate that is waited for, in
#: bytes per second. A byte now and then would hold the others for ever.
WHOLE_BODY_SECONDS, SLOWEST_RATE = 30.0, 64 * 1024
#: For a client to take some of what waits to be sent to it. A stream that has nothing to say waits
#: for nobody.
TAKING_SECONDS = 30.0
#: However many files may be open; and the part of those that strangers may have.
MOST_STRANGERS, STRANGERS_PART = 1024, 0.25
#: Of half requests, all together.
MOST_BYTES = 64 * 1024 * 1024
#: The same words are logged this often.
SELDOM_SECONDS = 60.0
#: Under this name a request's state has what the doorkeeper calls when the token was right.
ADMIT = "admit"

#: Where Linux (since 4.1) tells in `TCP_INFO` how many bytes the other end has acknowledged.
_ACKNOWLEDGED = struct.Struct("120xQ")
_OUT_OF_FILES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)

log = logging.getLogger(__name__)


class Strangers:
    """Oldest first."""

    def __init__(self, open_files: int) -> None:
        """`open_files`: how many this process may have."""
        self._most = max(1, min(MOST_STRANGERS, int(open_files * STRANGERS_PART)))
        self._waiting: dict[BoundedConnection, int] = {}
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, connection: object) -> bool:
        return connection in self._waiting

    def came(self, connection: BoundedConnection) -> None:
        self._waiting[connection] = 0
        while len(self._waiting) > self._most:
            self.turn_out_oldest()

    def sent(self, connection: BoundedConnection, size: int) -> None:
        if connection not in self._waiting:
            return
        self._waiting[connection] += size
        self._bytes += size
        while self._bytes > MOST_BYTES:
            self.turn_out_oldest()

    def left(self, connection: BoundedConnection) -> None:
        """It is known now, or gone."""
        self._bytes -= self._waiting.pop(connection, 0)

    def turn_out_oldest(self) -> None:
        if self._waiting:
            oldest = next(iter(self._waiting))
            self.left(oldest)
            oldest.turn_out()


class Deadline:
    def __init__(
        self, loop: asyncio.AbstractEventLoop, seconds: float, missed: Callable[[], None]
    ) -> None:
        self._loop, self._seconds, self._missed = loop, seconds, missed
        self._timer: asyncio.TimerHandle | None = None
        #: Of a pause: what was left when it began.
        self._left: float | None = None

    def begin(self) -> None:
        self.cancel()
        self._timer = self._loop.call_later(self._seconds, self._missed)

    def pause(self) -> None:
        """Time that we take ourselves does not count."""
        if self._timer is not None:
            self._left = max(0.0, self._timer.when() - self._loop.time())
            self._timer.cancel()
            self._timer = None

    def resume(self) -> None:
        if self._left is not None:
            self._timer = self._loop.call_later(self._left, self._missed)
            self._left = None

    def cancel(self) -> None:
        self._left = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class Pace:
    """Of a body: whoever sends more of it has more time. The clock looks, so that what arrives is
    only counted."""

    def __init__(self, loop: asyncio.AbstractEventLoop, missed: Callable[[], None]) -> None:
        self._loop, self._missed = loop, missed
        self._timer: asyncio.TimerHandle | None = None
        self._began, self._came = 0.0, 0

    def came(self, size: int) -> None:
        """The first of it begins the time."""
        if self._timer is None:
            self._began, self._came = self._loop.time(), 0
            self._timer = self._loop.call_at(self._until(), self._look)
        self._came += size

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _until(self) -> float:
        return self._began + WHOLE_BODY_SECONDS + self._came / SLOWEST_RATE

    def _look(self) -> None:
        if self._until() > self._loop.time():
            self._timer = self._loop.call_at(self._until(), self._look)
        else:
            self._timer = None
            self._missed()


class Taking:
    """Of what is sent: whoever takes some of it has more time for the rest. What the system has in
    its buffers counts: they empty in large steps, and a slow line takes its time for one."""

    def __init__(self, loop: asyncio.AbstractEventLoop, missed: Callable[[], None]) -> None:
        self._loop, self._missed = loop, missed
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, transport: asyncio.Transport) -> None:
        """More waits to be sent than the system takes."""
        self.end()
        self._wait(transport, _taken(transport))

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wait(self, transport: asyncio.Transport, taken: int) -> None:
        self._timer = self._loop.call_later(TAKING_SECONDS, self._look, transport, taken)

    def _look(self, transport: asyncio.Transport, before: int) -> None:
        self._timer = None
        if (taken := _taken(transport)) != before:
            self._wait(transport, taken)
        else:
            self._missed()


def _taken(transport: asyncio.Transport) -> int:
    """In bytes, by the client's system; one that reads nothing takes no more once its own buffers
    are full."""
    told = transport.get_extra_info("socket").getsockopt(
        socket.IPPROTO_TCP, socket.TCP_INFO, _ACKNOWLEDGED.size
    )
    acknowledged: int = _ACKNOWLEDGED.unpack(told)[0]
    return acknowledged


class BoundedConnection(H11Protocol):
    def __init__(
        self,
        strangers: Strangers,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, {**app_state, ADMIT: self._admit}, _loop)
        self._strangers = strangers
        self._request = Deadline(self.loop, REQUEST_SECONDS, self.turn_out)
        self._body = Deadline(self.loop, BODY_SECONDS, self.turn_out)
        self._pace = Pace(self.loop, self.turn_out)
        self._taking = Taking(self.loop, self.turn_out)
        self.app = InPieces(self.app)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        # Whoever sends waits for all that was sent before, and not until little of it is left.
        transport.set_write_buffer_limits(high=1, low=0)
        self._request.begin()
        self._strangers.came(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._strangers.left(self)
        self._request.cancel()
        self._body.cancel()
        self._pace.end()
        self._taking.end()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._taking.begin(self.transport)

    def resume_writing(self) -> None:
        self._taking.end()
        super().resume_writing()

    def data_received(self, data: bytes) -> None:
        self._strangers.sent(self, len(data))
        if self.transport.is_closing():
            return
        super().data_received(data)
        self._body.cancel()
        self._wait_for_body(len(data))

    def _wait_for_body(self, came: int) -> None:
        if self.cycle is None or self.cycle.response_complete:
            return
        if self.cycle.more_body:
            self._body.begin()
            self._pace.came(came)
        else:
            self._pace.end()
            self._request.pause()

    def on_response_complete(self) -> None:
        self._body.cancel()
        self._pace.end()
        if not self.transport.is_closing():
            if self in self._strangers:
                self._request.resume()
            else:
                self._request.begin()
        super().on_response_complete()
        # Of the next request some may be here already, and nothing more may ever come.
        self._wait_for_body(0)

    def turn_out(self) -> None:
        self.transport.abort()

    def _admit(self) -> None:
        self._strangers.left(self)
        self._request.cancel()


class Seldom(logging.Filter):
    """Lets the same words through now and then only: strangers could fill a log with them."""

    def __init__(self) -> None:
        super().__init__()
        self._said: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        now = time.monotonic()
        if now - self._said.get(record.msg, -SELDOM_SECONDS) < SELDOM_SECONDS:
            return False
        if len(self._said) > 1000:
            self._said.clear()
        self._said[record.msg] = now
        return True


def stay_calm(loop: asyncio.AbstractEventLoop, strangers: Strangers) -> None:
    """Where no more files can be opened, asyncio tries again in a second and says so with a
    traceback for every connection that waits. Once in a while is enough, and strangers make room.
    """
    log.addFilter(Seldom())
    logging.getLogger("uvicorn.error").addFilter(Seldom())

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, OSError) and error.errno in _OUT_OF_FILES and "socket" in context:
            strangers.turn_out_oldest()
            log.error("a connection waits: %s; `ulimit -n` allows more", error.strerror)
        else:
            loop.default_exception_handler(context)

    loop.set_exception_handler(handle)
