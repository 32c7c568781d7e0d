"""HTTP/1.1 on one connection, as much of it as an API server speaks.

Written here because it is the hot path: `python -m benchmarks.kubernetes http` compares what a
request costs with general clients, and on a busy machine that time is the API server's. One request
at a time; what is not understood ends the connection instead of being guessed at.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import NamedTuple

from regatta.http.failures import NotHttp
from regatta.http.framing import Chunks, KnownLength, UntilClosed
from regatta.http.stream import Stream

#: The most that the head of an answer may take.
MOST_HEAD = 1 << 20
_STATUS = re.compile(r"HTTP/1\.([0-9]) ([1-9][0-9]{2})(?: .*)?")


class Head(NamedTuple):
    status: int
    #: Names in lower case; values of a repeated header are joined by ", ".
    headers: Mapping[str, str]


class Connection:
    def __init__(self, stream: Stream, context: ssl.SSLContext | None) -> None:
        self._stream = stream
        #: Of which credentials and trust this connection is made; the pool compares.
        self.context = context
        self.idle_since = 0.0
        self._method = ""
        #: Whether the server took all of the last request before it answered.
        self._sent = True
        #: Whether the last answer was read to its end and the server keeps the connection open.
        self._clean = True

    @property
    def usable(self) -> bool:
        # Gateways write a farewell (408) into idle connections. It must not pass for the answer
        # to the next request.
        return self._clean and not self._stream.buffer and self._stream.open

    async def send(
        self, method: str, target: str, headers: Sequence[tuple[str, str]], body: bytes = b""
    ) -> Head:
        """Sends a request and reads the head of its answer."""
        if self._stream.buffer:
            said = bytes(self._stream.buffer[:80])
            raise NotHttp(f"what answers there speaks before it is asked: {said!r}")
        self._clean = False
        self._method = method
        self._stream.write(_request(method, target, headers, body))
        self._sent = await self._stream.written()
        head = await self._head()
        while head.status < 200:
            if head.status == 101:
                raise NotHttp("the other side changes to a protocol that nobody asked for")
            head = await self._head()
        return head

    async def _head(self) -> Head:
        block = await self._stream.until(b"\r\n\r\n", MOST_HEAD, "the head of an answer")
        first, *rest = block.decode("latin-1").split("\r\n")
        status = _STATUS.fullmatch(first)
        if status is None:
            raise NotHttp(f"what answers there does not speak HTTP: {first[:80]!r}")
        headers: dict[str, str] = {}
        for line in rest:
            name, colon, value = line.partition(":")
            if not colon or not name or name != name.strip():
                raise NotHttp(f"a broken header in the answer: {line[:80]!r}")
            name, value = name.lower(), value.strip(" \t")
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        if status[1] == "0":
            headers.setdefault("connection", "close")
        return Head(int(status[2]), headers)

    async def body(self, head: Head) -> bytes:
        """All of the answer. Afterwards the connection is good for another request."""
        framing = self._framing(head)
        first = await framing.part()
        if first and (part := await framing.part()):
            parts = [first, part]
            while part := await framing.part():
                parts.append(part)
            first = b"".join(parts)
        self._finished(head, framing)
        return first

    async def parts(self, head: Head) -> AsyncGenerator[bytes, None]:
        """The answer as it comes. A chunk is one part, unless it is very large: for a watch, about
        one part per event."""
        framing = self._framing(head)
        while part := await framing.part():
            yield part
        self._finished(head, framing)

    def close(self) -> None:
        """At once: a peer that has stopped answering would hold up a polite farewell."""
        self._clean = False
        self._stream.close()

    def _framing(self, head: Head) -> KnownLength | Chunks | UntilClosed:
        headers = head.headers
        if head.status in (204, 304) or self._method == "HEAD":
            return KnownLength(self._stream, 0)
        encoding = headers.get("transfer-encoding")
        if encoding is not None:
            if encoding.lower() != "chunked":
                raise NotHttp(f"an answer with Transfer-Encoding {encoding!r}")
            return Chunks(self._stream)
        length = headers.get("content-length")
        if length is None:
            return UntilClosed(self._stream)
        if not length.isascii() or not length.isdigit():
            raise NotHttp(f"an answer with Content-Length {length!r}")
        return KnownLength(self._stream, int(length))

    def _finished(self, head: Head, framing: KnownLength | Chunks | UntilClosed) -> None:
        # Two lengths at once: others on the way may have believed the other one.
        doubtful = "transfer-encoding" in head.headers and "content-length" in head.headers
        said = head.headers.get("connection", "").lower()
        closing = bool(said) and "close" in map(str.strip, said.split(","))
        endless = isinstance(framing, UntilClosed)
        self._clean = self._sent and not (closing or doubtful or endless)


def _request(method: str, target: str, headers: Sequence[tuple[str, str]], body: bytes) -> bytes:
    lines = [f"{method} {target} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in headers]
    if body or method in ("POST", "PUT", "PATCH"):
        lines.append(f"Content-Length: {len(body)}")
    head = "\r\n".join(lines)
    if head.count("\n") != len(lines) - 1 or head.count("\r") != len(lines) - 1:
        raise ValueError("a request's target and headers cannot hold line breaks")
    return f"{head}\r\n\r\n".encode("latin-1") + body
