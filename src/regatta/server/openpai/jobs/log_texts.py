"""What one task printed, as text: all of it in pieces, or the last 16 KiB."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

from regatta.api.errors import JobNotFound, NotPossible
from regatta.engines.base import Engine, LogBatch, LogLine, LogQuery
from regatta.engines.upcoming import next_of
from regatta.server.openpai.jobs.log_links import no_log

STREAMS = ("stdout", "stderr", "all")
TAIL_BYTES = 16384


class TaskLog:
    """One stream of one life of a task. An engine that cannot tell the streams of a process apart
    has everything on stdout."""

    def __init__(
        self,
        engine: Engine,
        namespace: str,
        name: str,
        query: LogQuery,
        stream: str,
    ) -> None:
        self._engine, self._namespace, self._name = engine, namespace, name
        self._query, self._stream = query, stream

    async def whole(self) -> AsyncIterator[bytes]:
        """Raises OpenPaiError (404) at once where there is none."""
        batches = self._batches(None)
        try:
            first = await next_of(batches) or ()  # it may have printed nothing
        except BaseException:
            await batches.aclose()
            raise
        return self._from(first, batches)

    async def tail(self) -> bytes:
        """Raises OpenPaiError (404)."""
        # A line has at least a byte, so these many hold the end of everything; of one stream among
        # others they may not.
        kept, seen = await self._end(TAIL_BYTES)
        if len(kept) < TAIL_BYTES and seen >= TAIL_BYTES and self._stream != "all":
            kept, _ = await self._end(None)
        return kept

    async def _end(self, lines: int | None) -> tuple[bytes, int]:
        kept, seen = b"", 0
        async with aclosing(self._batches(lines)) as batches:
            async for batch in batches:
                seen += len(batch)
                kept = (kept + await self._text(batch))[-TAIL_BYTES:]
        return kept, seen

    async def _from(
        self, first: tuple[LogLine, ...], batches: AsyncGenerator[tuple[LogLine, ...], None]
    ) -> AsyncGenerator[bytes, None]:
        async with aclosing(batches):
            yield await self._text(first)
            async for batch in batches:
                yield await self._text(batch)

    async def _batches(self, lines: int | None) -> AsyncGenerator[tuple[LogLine, ...], None]:
        query = LogQuery(
            uid=self._query.uid,
            role=self._query.role,
            index=self._query.index,
            attempt=self._query.attempt,
            tail=lines,
        )
        updates = self._engine.logs(self._namespace, self._name, query)
        try:
            async with aclosing(updates) as told:
                async for update in told:
                    if isinstance(update, LogBatch):
                        yield update.lines
        except (JobNotFound, NotPossible) as gone:
            raise no_log(str(gone)) from None

    async def _text(self, lines: tuple[LogLine, ...]) -> bytes:
        """In a thread: a batch may have megabytes."""
        return await asyncio.to_thread(self._joined, lines)

    def _joined(self, lines: tuple[LogLine, ...]) -> bytes:
        mine = (line.text for line in lines if self._has(line))
        return "".join(f"{text}\n" for text in mine).encode(errors="replace")

    def _has(self, line: LogLine) -> bool:
        if self._stream == "all":
            return True
        return (line.stream == "stderr") == (self._stream == "stderr")
