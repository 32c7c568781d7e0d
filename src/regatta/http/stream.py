"""The bytes of one connection: buffered as they come, with the other side held back when we are
slow.

A protocol of our own instead of asyncio's StreamReader, because a connection that idles must be
able to tell whether bytes have come that nobody asked for.
"""

from __future__ import annotations

import asyncio
import ssl

from regatta.http.failures import Broken, NotHttp

#: Above this many buffered bytes the socket is not read until somebody wants more.
BUFFER = 1 << 20


class Stream(asyncio.Protocol):
    """Used by one at a time, who writes and then reads."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        #: What has come and was not taken yet.
        self.buffer = bytearray()
        #: Whether anything can still come, and why not, where there is a reason.
        self._ended = False
        self._lost: Exception | None = None
        self._held_back = False
        #: Whether the other side is slow to take what was written.
        self._full = False
        #: Whoever reads, or writes more than the other side takes at once.
        self._waiter: asyncio.Future[None] | None = None

    # What the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        if len(self.buffer) > BUFFER and not self._held_back and self._transport is not None:
            self._held_back = True
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> None:
        """The other side says no more. Nobody here asks anything of who cannot answer: closed."""
        self._ended = True
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended = True
        self._lost = self._lost or exc
        self._transport = None
        self._wake()

    def pause_writing(self) -> None:
        self._full = True

    def resume_writing(self) -> None:
        self._full = False
        self._wake()

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    # Reading

    @property
    def open(self) -> bool:
        return not self._ended and self._transport is not None and not self._transport.is_closing()

    async def more(self) -> bool:
        """Waits for bytes beyond those in the buffer. False where the other side has finished."""
        if self._ended:
            if self._lost is not None:
                raise Broken(str(self._lost) or type(self._lost).__name__) from self._lost
            return False
        if self._held_back and self._transport is not None:
            self._held_back = False
            self._transport.resume_reading()
        before = len(self.buffer)
        while len(self.buffer) == before and not self._ended:
            self._waiter = self._loop.create_future()
            await self._waiter
        return len(self.buffer) > before or await self.more()

    async def at_least(self, size: int) -> None:
        while len(self.buffer) < size:
            if not await self.more():
                raise Broken("the other side closed it")

    def take(self, size: int) -> bytes:
        """The first `size` bytes of those that are here."""
        buffer = self.buffer
        if size >= len(buffer):
            taken = bytes(buffer)
            buffer.clear()
        else:
            taken = bytes(memoryview(buffer)[:size])
            del buffer[:size]
        return taken

    async def until(self, mark: bytes, most: int, what: str) -> bytes:
        """Everything before the mark, which is taken too. `what` it is that may not take more
        than `most` bytes."""
        buffer = self.buffer
        searched = 0
        while (found := buffer.find(mark, searched)) < 0 and len(buffer) <= most:
            searched = max(0, len(buffer) - len(mark) + 1)
            if not await self.more():
                raise Broken("the other side closed it")
        if not 0 <= found <= most:
            raise NotHttp(f"{what} of more than {most} bytes")
        taken = bytes(memoryview(buffer)[:found])
        del buffer[: found + len(mark)]
        return taken

    # Writing

    def write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)

    async def written(self) -> bool:
        """Waits until most of what was written is on its way. False where the other side has
        answered or closed before: what it said is then for the reading to find out."""
        while self._full and not self._ended and not self.buffer:
            self._waiter = self._loop.create_future()
            await self._waiter
        return not self._full

    async def start_tls(self, context: ssl.SSLContext, server_name: str | None) -> None:
        if self._transport is None or self._ended:
            raise ConnectionResetError("the other side closed it")
        if self.buffer:
            raise OSError(f"it said more than it was asked for: {bytes(self.buffer[:40])!r}")
        plain, self._transport = self._transport, None
        # Where this fails, asyncio has closed the plain one, and told nobody.
        self._transport = await self._loop.start_tls(
            plain, self, context, server_hostname=server_name
        )
        if self._transport is None:
            raise ConnectionResetError("the other side closed it")

    def close(self) -> None:
        """At once: a peer that has stopped answering would hold up a polite farewell."""
        self._ended = True
        self._lost = self._lost or ConnectionAbortedError("it was closed on this side")
        if self._transport is not None:
            self._transport.abort()
