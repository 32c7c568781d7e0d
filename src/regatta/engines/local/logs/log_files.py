"""A pod's log as it lies on the disk: runs, segments, records, and positions in them.

The supervisor's `segments` and `pump` modules write what is read here. A position is
`run:segment:offset`, the offset counted over the whole log of the run: it stays valid when
segments are rotated away, and then tells how much was.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from regatta.engines.local.replicas.runspec import LOGS_FOLDER

_CHUNK = 256 * 1024


class Position(msgspec.Struct, frozen=True, order=True):
    run: int = 0
    segment: int = 0
    offset: int = 0

    def __str__(self) -> str:
        return f"{self.run}:{self.segment}:{self.offset}"

    @classmethod
    def parse(cls, text: str) -> Position:
        """ValueError where it is none of ours."""
        run, segment, offset = map(int, text.split(":"))
        return cls(run, segment, offset)


class Segment(msgspec.Struct, frozen=True, order=True):
    run: int
    number: int
    restart: int
    #: Where it begins in the run's whole log.
    start: int
    path: str

    @property
    def beginning(self) -> Position:
        return Position(self.run, self.number, self.start)

    @property
    def instance(self) -> tuple[int, int]:
        """Which try of the replica wrote it."""
        return self.run, self.restart


class Record(msgspec.Struct, frozen=True):
    at: str
    stream: str
    #: It ends a line.
    full: bool
    #: It goes on where the record just before it stopped.
    continues: bool
    text: bytes
    start: Position
    end: Position


def list_segments(pod_folder: Path) -> list[Segment]:
    """What is there now, oldest first. Only the last may still grow: a writer closes one before
    it opens the next."""
    found = []
    for run in _names(pod_folder / "runs"):
        logs = pod_folder / "runs" / run / LOGS_FOLDER
        for name in _names(logs) if run.isdigit() else ():
            parts = name.removesuffix(".log").split("-")
            if name.endswith(".log") and len(parts) == 3 and all(map(str.isdigit, parts)):
                restart, number, start = map(int, parts)
                found.append(Segment(int(run), number, restart, start, str(logs / name)))
    return sorted(found)


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []


def read_records(segment: Segment, offset: int) -> Iterator[Record]:
    """Whole records from an offset of the run's log on. FileNotFoundError: rotated away."""
    with open(segment.path, "rb") as file:
        file.seek(offset - segment.start)
        rest = b""
        while chunk := file.read(_CHUNK):
            lines = (rest + chunk).split(b"\n")
            rest = lines.pop()  # the writer is in the middle of it
            for line in lines:
                start, offset = offset, offset + len(line) + 1
                record = _record(segment, line, start, offset)
                if record is not None:
                    yield record


def _record(segment: Segment, line: bytes, start: int, end: int) -> Record | None:
    parts = line.split(b" ", 3)
    if len(parts) < 4:
        return None  # torn by a crash of the machine
    at, stream, tags, text = parts
    return Record(
        at.decode("ascii", "replace"),
        stream.decode("ascii", "replace"),
        tags[:1] == b"F",
        tags[1:] == b":c",
        text,
        Position(segment.run, segment.number, start),
        Position(segment.run, segment.number, end),
    )


def tail_start(
    segments: list[Segment], lines: int, wanted: Callable[[list[Record]], list[Record]]
) -> Position | None:
    """Where the last so many lines begin, of those that are wanted. None: at the start."""
    if lines <= 0:
        return _end(segments)
    starts: list[Position] = []
    for segment in reversed(segments):
        size = _size(segment)
        here: list[Position] = []
        for length in (_CHUNK, size):  # mostly the end of the last segment is enough
            here = _line_starts(segment, size, length, wanted)
            if len(here) + len(starts) >= lines or length >= size:
                break
        starts = here + starts
        if len(starts) >= lines:
            return starts[-lines]
    return None


def _line_starts(
    segment: Segment, size: int, length: int, wanted: Callable[[list[Record]], list[Record]]
) -> list[Position]:
    """Beginnings of wanted lines in the last `length` bytes."""
    skipped = max(0, size - length)
    try:
        if skipped:
            with open(segment.path, "rb") as file:
                file.seek(skipped)
                skipped += len(file.readline())
        records = list(read_records(segment, segment.start + skipped))
    except FileNotFoundError:
        return []
    return [record.start for record in wanted([r for r in records if not r.continues])]


def _size(segment: Segment) -> int:
    try:
        return os.stat(segment.path).st_size
    except FileNotFoundError:
        return 0


def _end(segments: list[Segment]) -> Position | None:
    if not segments:
        return None
    last = segments[-1]
    return Position(last.run, last.number, last.start + _size(last))
