"""The other end of a connection: a real socket that says what a test's script says."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Talk:
    """One client's connection, from the server's side."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        #: Bytes that this side has written, whether or not they were taken.
        self.said = 0

    async def request(self) -> bytes:
        """One request, its body included."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        for line in head.lower().split(b"\r\n"):
            if line.startswith(b"content-length:"):
                return head + await self.reader.readexactly(int(line.split(b":")[1]))
        return head

    async def say(self, *pieces: bytes) -> None:
        """Each piece by itself: the client's side of the same loop gets its turn in between."""
        for piece in pieces:
            self.writer.write(piece)
            self.said += len(piece)
            await self.writer.drain()
            for _ in range(4):
                await asyncio.sleep(0)

    def half_close(self) -> None:
        self.writer.write_eof()

    def reset(self) -> None:
        """As a machine that has forgotten the connection does: RST, not FIN."""
        at_once = struct.pack("ii", 1, 0)
        self.writer.get_extra_info("socket").setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, at_once
        )
        self.writer.transport.abort()

    async def until_left(self) -> None:
        """Until the client has gone, whatever it still says."""
        while await self.reader.read(1 << 16):
            pass


Script = Callable[[Talk], Awaitable[None]]


class Peer:
    def __init__(self, script: Script) -> None:
        self._script = script
        self.url = ""
        self.port = 0
        self.talks: list[Talk] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        talk = Talk(reader, writer)
        self.talks.append(talk)
        try:
            with suppress(OSError, EOFError):
                await self._script(talk)
        finally:
            self._tasks.discard(task)
            writer.close()

    @property
    def busy(self) -> int:
        """How many connections stand."""
        return len(self._tasks)


@asynccontextmanager
async def a_peer(
    script: Script, *, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1"
) -> AsyncIterator[Peer]:
    peer = Peer(script)
    server = await asyncio.start_server(peer._serve, host, 0, ssl=tls)
    peer.port = server.sockets[0].getsockname()[1]
    at = f"[{host}]" if ":" in host else host
    peer.url = f"{'https' if tls else 'http'}://{at}:{peer.port}"
    try:
        yield peer
    finally:
        server.close()
        tasks = list(peer._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        async with asyncio.timeout(60):  # What was said last is still on its way out.
            closed = (talk.writer.wait_closed() for talk in peer.talks)
            await asyncio.gather(*closed, return_exceptions=True)


def answering(*answers: bytes | Iterable[bytes], then: Script | None = None) -> Script:
    """Reads a request before each answer, then does what `then` says, or waits for the client to
    leave. An answer may be given in pieces."""

    async def script(talk: Talk) -> None:
        for answer in answers:
            await talk.request()
            await talk.say(*([answer] if isinstance(answer, bytes) else answer))
        await (then or Talk.until_left)(talk)

    return script


async def hang_up(talk: Talk) -> None:
    talk.writer.close()


async def half_close(talk: Talk) -> None:
    talk.half_close()
    await talk.until_left()


async def reset(talk: Talk) -> None:
    talk.reset()
