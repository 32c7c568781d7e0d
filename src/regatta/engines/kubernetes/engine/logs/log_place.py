"""How far a pod's log was read, so that another reading goes on right there.

The API goes on by the second: what it sends again is passed over. A place is a time and how many
lines were read from the first line of that time on, in the order of the file: lines may share a
time, and two streams of one container may be a little out of order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from regatta.api.errors import BadRequest
from regatta.engines.base import LogLine
from regatta.engines.logs.selection import is_whole

#: Of a pod that was there when a reading with `tail` began, and of which no line was told yet.
ONLY_THE_TAIL = "-"

_WRITTEN = re.compile(r"(?P<run>\d{1,9}):(?P<at>[0-9TZ:.-]{30}|):(?P<told>\d{1,9})", re.ASCII)


class Position(NamedTuple):
    """A place as it was at one line. Its text is what a resumed query brings back."""

    #: How often the container had restarted in place.
    run: int = 0
    at: str = ""
    told: int = 0

    def __str__(self) -> str:
        return f"{self.run}:{self.at}:{self.told}"

    @classmethod
    def read(cls, text: str) -> Position:
        found = _WRITTEN.fullmatch(text)
        if found is None:
            raise BadRequest(
                f"{text!r} is no position in a log of this cluster; "
                "resume with one that it gave, or begin without any"
            )
        return cls(int(found["run"]), found["at"], int(found["told"]))


class Read(NamedTuple):
    """A line, and the place behind it."""

    line: LogLine
    uid: str
    position: Position


class Place:
    def __init__(self, uid: str, position: Position = Position()) -> None:  # noqa: B008
        self._uid = uid
        self._run, self._at, self._told = position
        self._looking = False
        self._skip = 0

    @property
    def position(self) -> Position:
        return Position(self._run, self._at, self._told)

    @property
    def run(self) -> int:
        return self._run

    def next_run(self, run: int) -> None:
        self._run = run

    @property
    def since(self) -> str:
        """What to ask the API for; empty: everything."""
        return to_the_second(self._at)

    def reopened(self) -> None:
        """The log is read from `since` again."""
        self._looking, self._skip = bool(self._at), 0

    def news(self, lines: list[LogLine]) -> list[Read]:
        """Those that were not read before."""
        fresh = (line for line in lines if self._is_news(line))
        return [Read(line, self._uid, self.position) for line in fresh]

    def _is_news(self, line: LogLine) -> bool:
        if self._looking:
            if line.at < self._at:
                return False
            self._looking = False
            self._skip = self._told if line.at == self._at else 0
        if self._skip:
            self._skip -= 1
            return False
        if line.at > self._at:
            self._at, self._told = line.at, 1
        elif line.at[:19] >= self._at[:19]:  # it would be sent again
            self._told += 1
        return True


def to_the_second(at: str) -> str:
    return f"{at[:19]}Z" if at else ""


def length_of(reads: list[Read]) -> int:
    return sum(len(read.line.text) for read in reads)


def in_batches(reads: list[Read]) -> Iterator[list[Read]]:
    some, length = list[Read](), 0
    for read in reads:
        some.append(read)
        length += len(read.line.text)
        if is_whole(len(some), length):
            yield some
            some, length = [], 0
    if some:
        yield some


def in_order_of_time(reads: list[Read]) -> list[Read]:
    """Each pod's lines stay in their own order, whatever their times say."""
    latest: dict[str, str] = {}
    moments: list[str] = []
    for read in reads:
        moment = max(read.line.at, latest.get(read.uid, ""))
        latest[read.uid] = moment
        moments.append(moment)
    order = sorted(range(len(reads)), key=moments.__getitem__)
    return [reads[number] for number in order]
