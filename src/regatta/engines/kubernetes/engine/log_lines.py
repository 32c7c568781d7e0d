"""A container's log as the kubelet sends it: lines with their time, each of them told once."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime

from regatta.api.errors import RegattaError
from regatta.engines.base import LogLine, LogQuery

#: The kubelet does not say which stream a line came from.
STREAM = "stdout"
LONGEST_LINE = 64 * 1024

#: In UTC or with an offset: containerd writes the zone of its node.
_TIME = re.compile(
    r"(?P<seconds>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(?P<rest>\d{1,9})\d*)?"
    r"(?P<zone>Z|[+-]\d\d:\d\d)"
)


class Wanted:
    """Which lines somebody asked for."""

    def __init__(self, query: LogQuery) -> None:
        self._since = "" if query.since is None else timestamp(query.since)
        try:
            self._pattern = None if query.grep is None else re.compile(query.grep)
        except re.error as wrong:
            raise RegattaError(
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


class Unreadable(Exception):
    """The kubelet's own words in place of a log: it has the container no more."""


async def read_lines(replica: str, parts: AsyncIterator[bytes]) -> AsyncIterator[LogLine]:
    """Raises Unreadable. A line without end is shown in pieces, all with its time."""
    begun, cut = b"", ""
    async for part in parts:
        *whole, begun = (begun + part).split(b"\n")
        for raw in whole:
            yield parse_line(replica, raw, cut)
            cut = ""
        if len(begun) > LONGEST_LINE:
            piece = parse_line(replica, begun, cut)
            begun, cut = b"", piece.at
            yield piece
    if begun:
        yield parse_line(replica, begun, cut)


def parse_line(replica: str, raw: bytes, at: str = "") -> LogLine:
    """With its time, unless it is the rest of one whose time is known."""
    text = raw.decode("utf-8", "replace").rstrip("\r")
    if not at:
        when, _, rest = text.partition(" ")
        found = _TIME.fullmatch(when)
        if found is None:
            raise Unreadable(text)
        text, at = rest, _padded(found)
    return LogLine(replica, at, STREAM, text)


def timestamp(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f000Z")


def _padded(found: re.Match[str]) -> str:
    """In UTC and with all nine digits, so that text compares as time does."""
    seconds, rest, zone = found["seconds"], found["rest"] or "", found["zone"]
    if zone != "Z":
        moment = datetime.fromisoformat(seconds + zone).astimezone(UTC)
        seconds = moment.strftime("%Y-%m-%dT%H:%M:%S")
    return f"{seconds}.{rest:0<9}Z"
