"""HTTP/1.1 on one connection, as much of it as an API server speaks.

Written here because it is the hot path: a general client costs about a millisecond of processor
time for each request, this about a tenth, and on a busy machine that time is the API server's.
One request at a time; what is not understood ends the connection instead of being guessed at.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Mapping
from typing import NamedTuple

from regatta.engines.kubernetes.api.errors import Unreachable

#: Reading pauses above this many buffered bytes; also the most an answer's head may take.
BUFFER = 1 << 20


class Head(NamedTuple):
    status: int
    #: Names in lower case; values of a repeated header are joined by ", ".
    headers: Mapping[str, str]


class Connection:
    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        context: ssl.SSLContext | None,
    ) -> None:
        self._reader = reader
        self._writer = writer
        #: Of which credentials and trust this connection is made; the pool compares.
        self.context = context
        self.idle_since = 0.0
        #: Whether the last answer was read to its end and the server keeps the connection open.
        self._clean = True

    @property
    def usable(self) -> bool:
        reader = self._reader
        # Gateways write a farewell (408) into idle connections. It must not pass for the answer
        # to the next request. Nothing public tells that bytes are waiting.
        unasked = bool(getattr(reader, "_buffer", b""))
        return (
            self._clean
            and not unasked
            and not self._writer.is_closing()
            and not reader.at_eof()
            and reader.exception() is None
        )

    async def send(
        self, method: str, target: str, headers: list[tuple[str, str]], body: bytes
    ) -> Head:
        """Sends a request and reads the head of its answer."""
        self._clean = False
        lines = [f"{method} {target} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in headers]
        if body or method in ("POST", "PUT", "PATCH"):
            lines.append(f"Content-Length: {len(body)}")
        head = "\r\n".join(lines)
        self._writer.write(f"{head}\r\n\r\n".encode("latin-1") + body)
        await self._writer.drain()
        answer = await self._head()
        while 100 <= answer.status < 200:
            answer = await self._head()
        return answer

    async def _head(self) -> Head:
        block = await self._reader.readuntil(b"\r\n\r\n")
        first, *rest = block[:-4].decode("latin-1").split("\r\n")
        version, _, remainder = first.partition(" ")
        code = remainder[:3]
        if not version.startswith("HTTP/1.") or not code.isdigit():
            raise Unreachable(f"what answers there does not speak HTTP: {first[:80]!r}")
        headers: dict[str, str] = {}
        for line in rest:
            name, _, value = line.partition(":")
            name, value = name.lower(), value.strip()
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        if version == "HTTP/1.0":
            headers.setdefault("connection", "close")
        return Head(int(code), headers)

    async def body(self, head: Head) -> bytes:
        """All of the answer. Afterwards the connection is good for another request."""
        length = _length(head)
        if length is not None:
            content = await self._reader.readexactly(length) if length else b""
        else:
            content = b"".join([part async for part in self.parts(head)])
        self._finished(head)
        return content

    async def parts(self, head: Head) -> AsyncGenerator[bytes, None]:
        """The answer as it comes: for a watch, about one part per event."""
        length = _length(head)
        if length is not None:
            while length:
                part = await self._reader.read(min(length, BUFFER))
                if not part:
                    raise asyncio.IncompleteReadError(b"", length)
                length -= len(part)
                yield part
        elif _chunked(head):
            while size := await self._chunk_size():
                part = await self._reader.readexactly(size + 2)
                yield part[:-2]
            while await self._reader.readuntil(b"\r\n") != b"\r\n":
                pass  # Trailers say nothing we need.
        else:
            while part := await self._reader.read(BUFFER):
                yield part
        self._finished(head)

    async def _chunk_size(self) -> int:
        line = await self._reader.readuntil(b"\r\n")
        try:
            return int(line.split(b";", 1)[0], 16)
        except ValueError:
            raise Unreachable(f"a broken chunk in the answer: {line[:40]!r}") from None

    def _finished(self, head: Head) -> None:
        ends_by_closing = _length(head) is None and not _chunked(head)
        closing = head.headers.get("connection", "").lower() == "close"
        self._clean = not ends_by_closing and not closing

    def close(self) -> None:
        """At once: a peer that has stopped answering would hold up a polite farewell."""
        self._writer.transport.abort()


def _chunked(head: Head) -> bool:
    return head.headers.get("transfer-encoding", "").lower() == "chunked"


def _length(head: Head) -> int | None:
    if head.status in (204, 304):
        return 0
    if _chunked(head):
        return None
    given = head.headers.get("content-length")
    if given is None:
        return None
    if not given.isdigit():
        raise Unreachable(f"an answer with Content-Length {given!r}")
    return int(given)
