"""A container's log as the kubelet sends it: lines with their time, each of them told once."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime

from regatta.engines.base import EngineError, LogLine, LogQuery

#: The kubelet does not say which stream a line came from.
STREAM = "stdout"
LONGEST_LINE = 64 * 1024


class Wanted:
    """Which lines somebody asked for."""

    def __init__(self, query: LogQuery) -> None:
        self._since = "" if query.since is None else timestamp(query.since)
        try:
            self._pattern = None if query.grep is None else re.compile(query.grep)
        except re.error as wrong:
            raise EngineError(
                f"grep: {query.grep!r} is not a regular expression ({wrong}); "
                "put a backslash before characters that are meant literally"
            ) from wrong

    @property
    def since(self) -> str:
        """To the second, as the API server hands it on."""
        return f"{self._since[:19]}Z" if self._since else ""

    @property
    def filters(self) -> bool:
        return self._pattern is not None

    def __contains__(self, line: LogLine) -> bool:
        if line.at < self._since:
            return False
        return self._pattern is None or self._pattern.search(line.text) is not None


class Place:
    """How far a log was read. The API resumes by the second, so lines may come again."""

    def __init__(self) -> None:
        self.at = ""
        self._told = 0
        self._again = 0

    @property
    def since(self) -> str:
        return f"{self.at[:19]}Z" if self.at else ""

    def resume(self) -> None:
        self._again = 0

    def is_news(self, line: LogLine) -> bool:
        if line.at > self.at:
            self.at, self._told, self._again = line.at, 1, 1
            return True
        if line.at < self.at:
            return False
        self._again += 1
        if self._again <= self._told:
            return False
        self._told += 1
        return True


async def read_lines(replica: str, parts: AsyncIterator[bytes]) -> AsyncIterator[LogLine]:
    begun = b""
    async for part in parts:
        *whole, begun = (begun + part).split(b"\n")
        for raw in whole:
            yield parse_line(replica, raw)
        if len(begun) > LONGEST_LINE:
            yield parse_line(replica, begun)
            begun = b""
    if begun:
        yield parse_line(replica, begun)


def parse_line(replica: str, raw: bytes) -> LogLine:
    when, gap, text = raw.partition(b" ")
    if not gap and not when[:4].isdigit():
        when, text = b"", raw
    shown = text.decode("utf-8", "replace").rstrip("\r")
    return LogLine(replica, _padded(when.decode("ascii", "replace")), STREAM, shown)


def timestamp(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f000Z")


def _padded(when: str) -> str:
    """With all nine digits, which the kubelet cuts off where they are zero: text then compares as
    time does."""
    seconds, _, rest = when.rstrip("Z").partition(".")
    return f"{seconds}.{rest:0<9}Z" if seconds else ""
