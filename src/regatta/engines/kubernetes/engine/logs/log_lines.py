"""A container's log as the kubelet sends it: lines with their time."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime

from regatta.engines.base import LogLine
from regatta.engines.logs.selection import LONGEST_LINE

#: The kubelet does not say which stream a line came from.
STREAM = "stdout"
#: More than a time takes.
_STAMP = 64

#: In UTC or with an offset: containerd writes the zone of its node.
_TIME = re.compile(
    rb"(?P<seconds>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(?P<rest>\d{1,9})\d*)?"
    rb"(?P<zone>Z|[+-]\d\d:\d\d)"
)


class Unreadable(Exception):
    """The kubelet's own words in place of a log: it has the container no more."""


async def read_lines(replica: str, parts: AsyncIterator[bytes]) -> AsyncIterator[list[LogLine]]:
    """What came together, together. Raises Unreadable.

    A line without end is shown in pieces, all with its time. They are the same whenever it is read,
    so that lines can be counted.
    """
    begun, at = b"", ""
    async for part in parts:
        *whole, begun = (begun + part).split(b"\n")
        lines: list[LogLine] = []
        for raw in whole:
            lines += _pieces(replica, raw, at)
            at = ""
        if len(begun) > LONGEST_LINE + _STAMP:
            at, begun = _stamped(begun, at)
            *full, begun = _cut(begun)
            lines += [_line(replica, at, piece) for piece in full]
        if lines:
            yield lines
    if begun:
        yield list(_pieces(replica, begun, at))


def _pieces(replica: str, raw: bytes, at: str) -> Iterator[LogLine]:
    """With its time, unless it is the rest of one whose time is known."""
    at, text = _stamped(raw, at)
    for piece in _cut(text):
        yield _line(replica, at, piece)


def _line(replica: str, at: str, text: bytes) -> LogLine:
    return LogLine(replica, at, STREAM, text.decode("utf-8", "replace").rstrip("\r"))


def _stamped(raw: bytes, at: str) -> tuple[str, bytes]:
    if at:
        return at, raw
    when, _, text = raw.partition(b" ")
    found = _TIME.fullmatch(when)
    if found is None:
        raise Unreadable(raw[:1000].decode("utf-8", "replace").rstrip("\r"))
    return _padded(found), text


def _cut(text: bytes) -> Iterator[bytes]:
    while len(text) > LONGEST_LINE:
        end = LONGEST_LINE
        while end > LONGEST_LINE - 4 and text[end] & 0xC0 == 0x80:
            end -= 1  # in the middle of a character
        yield text[:end]
        text = text[end:]
    yield text


def _padded(found: re.Match[bytes]) -> str:
    """In UTC and with all nine digits, so that text compares as time does."""
    seconds, zone = found["seconds"].decode(), found["zone"].decode()
    rest = (found["rest"] or b"").decode()
    if zone != "Z":
        moment = datetime.fromisoformat(seconds + zone).astimezone(UTC)
        seconds = moment.strftime("%Y-%m-%dT%H:%M:%S")
    return f"{seconds}.{rest:0<9}Z"
