"""Where an answer's body ends: after a known length, after a chunk of nothing, or with the
connection.

Each of these hands out the body part by part; an empty part is the end. None holds more than the
stream's buffer does, however large the body or a chunk of it is.
"""

from __future__ import annotations

import re

from regatta.http.failures import Broken, NotHttp
from regatta.http.stream import BUFFER, Stream

#: The most that the line before a chunk, or a trailer, may take.
MOST_LINE = 1 << 16
_SIZE = re.compile(rb"[0-9a-fA-F]{1,15}")


class KnownLength:
    def __init__(self, stream: Stream, length: int) -> None:
        self._stream = stream
        self._left = length

    async def part(self) -> bytes:
        if not self._left:
            return b""
        if not self._stream.buffer and not await self._stream.more():
            raise Broken("the other side closed it")
        part = self._stream.take(self._left)
        self._left -= len(part)
        return part


class Chunks:
    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        #: Of the chunk that is being read.
        self._left = 0
        self._over = False

    async def part(self) -> bytes:
        if not self._left and not self._over:
            self._left = await self._size()
            if not self._left:
                await self._trailers()
                self._over = True
        if self._over:
            return b""
        if self._left > BUFFER:
            await self._stream.at_least(BUFFER)
            self._left -= BUFFER
            return self._stream.take(BUFFER)
        await self._stream.at_least(self._left + 2)
        part = self._stream.take(self._left + 2)
        if not part.endswith(b"\r\n"):
            raise NotHttp(f"a chunk in the answer that ends in {part[-2:]!r}")
        self._left = 0
        return part[:-2]

    async def _size(self) -> int:
        line = await self._stream.until(b"\r\n", MOST_LINE, "the line before a chunk")
        size = line.partition(b";")[0].rstrip(b" \t")
        if not _SIZE.fullmatch(size):
            raise NotHttp(f"a broken chunk in the answer: {line[:40]!r}")
        return int(size, 16)

    async def _trailers(self) -> None:
        """They say nothing we need."""
        taken = 0
        while line := await self._stream.until(b"\r\n", MOST_LINE, "a trailer"):
            taken += len(line)
            if taken > MOST_LINE:
                raise NotHttp(f"trailers of more than {MOST_LINE} bytes")


class UntilClosed:
    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    async def part(self) -> bytes:
        if not self._stream.buffer and not await self._stream.more():
            return b""
        return self._stream.take(BUFFER)
