"""Which lines were asked for, without holding up the loop: a pattern is searched for in a process
of its own, which a thread waits for."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from regatta.engines.base import LogQuery
from regatta.engines.kubernetes.engine.logs.log_place import Read, to_the_second
from regatta.engines.logs.searches import search
from regatta.engines.logs.selection import LineFilter


class Sieve:
    def __init__(self, lines: LineFilter, asker: str) -> None:
        self._lines, self._asker = lines, asker
        self._turn = asyncio.Lock()

    @property
    def since(self) -> str:
        """What to ask the API for; empty: everything."""
        return to_the_second(self._lines.since)

    @property
    def has_pattern(self) -> bool:
        return self._lines.has_pattern

    async def choose(self, reads: list[Read]) -> list[Read]:
        """Raises PatternTooSlow."""
        recent = [read for read in reads if read.line.at >= self._lines.since]
        if not self._lines.has_pattern:
            return recent
        texts = [read.line.text for read in recent]
        async with self._turn:
            found = await search(self._asker, self._lines.matches, texts)
        return [read for read, matches in zip(recent, found, strict=True) if matches]


@contextmanager
def sieve_for(query: LogQuery) -> Iterator[Sieve]:
    """Raises RegattaError for what is no regular expression."""
    lines = LineFilter(query)
    try:
        yield Sieve(lines, query.asker)
    finally:
        lines.close()
