"""Reads replicas' logs: from the end, since a time, by pattern, and on from where one was."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import compress
from pathlib import Path

import msgspec

from regatta.api.errors import RegattaError
from regatta.engines.base import LogBatch, LogLine, LogQuery
from regatta.engines.local.logs.log_files import (
    Position,
    Record,
    Segment,
    list_segments,
    read_records,
    tail_start,
)
from regatta.engines.logs.selection import LONGEST_LINE, LineFilter, is_whole, timestamp

#: A line without an end is shown after this; until then its end may still come.
PATIENCE = timedelta(seconds=1)
#: After the end of any log.
BEYOND = Position(run=2**31)
#: The stream of remarks that are not the program's.
REMARK = "regatta"


class PodLog(msgspec.Struct, frozen=True, kw_only=True):
    """One pod whose log is wanted. `label` is what lines show: `worker-0`."""

    uid: str
    label: str
    #: The pod's folder, which holds `runs/<n>/logs/`.
    folder: Path


class _Cursor(msgspec.Struct):
    pod: PodLog
    #: After the last line that was given out; None: at the beginning, whatever is there.
    position: Position | None = None
    #: Only this try of the replica.
    instance: tuple[int, int] | None = None
    #: Somebody who asked for the end of a log does not miss its beginning.
    quiet_about_loss: bool = False


class _Step(msgspec.Struct):
    at: str
    #: To show; None for one that was passed over.
    line: LogLine | None
    cursor: _Cursor
    #: Where its pod's log goes on.
    position: Position
    #: A remark on what is missing: no pattern hides it.
    lost: bool = False


class LogReader:
    """Follows a set of pods. `read_more` yields what is there now and returns when it has caught
    up; call it again for what came since. Pods may be added at any time."""

    def __init__(self, query: LogQuery) -> None:
        """Raises RegattaError for a bad regular expression or position."""
        self._query = query
        self._cursors: list[_Cursor] = []
        self._begun = False
        self._filter = LineFilter(query)
        self._since = self._filter.since
        self._after = {uid: _parse(uid, text) for uid, text in query.after.items()}

    def add(self, pod: PodLog, *, late: bool = False) -> None:
        """`late`: it came after the reader began, so all of it is new."""
        late = late or self._begun
        cursor = _Cursor(pod)
        if self._query.previous and not late:
            cursor.instance = _previous_instance(list_segments(pod.folder))
            cursor.quiet_about_loss = True
        if pod.uid in self._after:
            cursor.position = self._after[pod.uid]
        elif self._query.tail is not None and not self._after and not late:
            segments = _wanted(list_segments(pod.folder), cursor)
            cursor.position = tail_start(segments, self._query.tail, self._only_wanted)
            cursor.quiet_about_loss = True
        elif self._since:
            cursor.position = _start_since(_wanted(list_segments(pod.folder), cursor), self._since)
            cursor.quiet_about_loss = True
        self._cursors.append(cursor)

    def pass_over(self, pod: PodLog) -> None:
        """Nothing of it is wanted; whoever resumes from our positions knows it too."""
        self._cursors.append(_Cursor(pod, position=BEYOND))

    def read_more(self, *, ended: bool = False) -> Iterator[LogBatch]:
        """Batches of at most 500 lines, fewer of long ones. `ended`: nothing more will be written,
        so also give an unfinished last line."""
        self._begun = True
        lines, length = list[LogLine](), 0
        steps = heapq.merge(
            *(self._steps(cursor, ended) for cursor in self._cursors), key=lambda step: step.at
        )
        while some := list(_some(steps)):
            for step in self._matching(some):
                step.cursor.position = step.position
                if step.line is not None:
                    lines.append(step.line)
                    length += len(step.line.text)
                    if is_whole(len(lines), length):
                        yield LogBatch(tuple(lines), self.positions())
                        lines, length = [], 0
        if lines:
            yield LogBatch(tuple(lines), self.positions())

    def close(self) -> None:
        self._filter.close()

    def positions(self) -> dict[str, str]:
        # A pod that nothing was read of yet is named too: left out, it would look like one of an
        # earlier attempt that the reader is done with.
        return {c.pod.uid: str(c.position or Position()) for c in self._cursors}

    def _steps(self, cursor: _Cursor, ended: bool) -> Iterator[_Step]:
        """Every line of one pod from its cursor on, its parts put together."""
        parts: list[Record] = []
        for record in self._records(cursor):
            if isinstance(record, _Lost):
                if parts:
                    yield self._step(cursor, parts)
                parts = []
                yield self._remark(cursor, record)
                continue
            if parts and (not record.continues or _length(parts) >= LONGEST_LINE):
                yield self._step(cursor, parts)
                parts = []
            parts.append(record)
            if record.full:
                yield self._step(cursor, parts)
                parts = []
        if parts and (ended or _is_old(parts[-1])):
            yield self._step(cursor, parts)

    def _records(self, cursor: _Cursor) -> Iterator[Record | _Lost]:
        at = cursor.position
        while True:
            # Listed before reading: what is older than the newest of these is complete.
            segments = _wanted(list_segments(cursor.pod.folder), cursor)
            ahead = [s for s in segments if at is None or (s.run, s.number) >= (at.run, at.segment)]
            if not ahead:
                return
            there = {(s.run, s.number) for s in segments}
            try:
                for segment in ahead:
                    offset = at.offset if at is not None and at.run == segment.run else 0
                    gone = segment.number > 0 and (segment.run, segment.number - 1) not in there
                    if gone and segment.start > offset and not cursor.quiet_about_loss:
                        yield _Lost(segment, segment.start - offset)
                    at = Position(segment.run, segment.number, max(offset, segment.start))
                    cursor.quiet_about_loss = False
                    for record in read_records(segment, at.offset):
                        at = record.end
                        yield record
                return
            except FileNotFoundError:
                continue  # rotated away between the two: list again

    def _step(self, cursor: _Cursor, parts: list[Record]) -> _Step:
        first, last = parts[0], parts[-1]
        text = b"".join(part.text for part in parts).decode("utf-8", "replace")
        # The end of a line whose beginning was shown already; often there is nothing more to say.
        nothing = not text and first.continues
        line: LogLine | None = None
        if not nothing and first.at >= self._since:
            line = LogLine(cursor.pod.label, first.at, first.stream, text)
        return _Step(first.at, line, cursor, last.end)

    def _remark(self, cursor: _Cursor, lost: _Lost) -> _Step:
        at = next((r.at for r in _first_records(lost.segment)), timestamp(datetime.now(UTC)))
        # As it is kept: a program that counts what it printed finds less.
        amount = f"{_amount(lost.size)} of this log (lines with their times)"
        text = f"{amount} were rotated away before this line"
        line = LogLine(cursor.pod.label, at, REMARK, text)
        shown = line if at >= self._since else None
        return _Step(at, shown, cursor, lost.segment.beginning, lost=True)

    def _matching(self, steps: list[_Step]) -> list[_Step]:
        """Lines without the pattern become passed over."""
        if self._filter.has_pattern:
            asked = [(step, step.line.text) for step in steps if step.line and not step.lost]
            found = self._filter.matches([text for _, text in asked])
            for (step, _), matches in zip(asked, found, strict=True):
                step.line = step.line if matches else None
        return steps

    def _only_wanted(self, records: list[Record]) -> list[Record]:
        recent = [record for record in records if record.at >= self._since]
        if not self._filter.has_pattern:
            return recent
        texts = [record.text.decode("utf-8", "replace") for record in recent]
        return list(compress(recent, self._filter.matches(texts)))


class _Lost(msgspec.Struct, frozen=True):
    """Between where a reader was and this segment, so many bytes are gone."""

    segment: Segment
    size: int


def _some(steps: Iterator[_Step]) -> Iterator[_Step]:
    """What is searched, and held, at a time."""
    length = 0
    for count, step in enumerate(steps, 1):
        yield step
        length += len(step.line.text) if step.line is not None else 0
        if is_whole(count, length):
            return


def _parse(uid: str, text: str) -> Position:
    try:
        return Position.parse(text)
    except ValueError:
        raise RegattaError(
            f"after[{uid}]: {text!r} is no position in a log; "
            "pass on what a batch said in `after` (run:segment:offset)"
        ) from None


def _wanted(segments: list[Segment], cursor: _Cursor) -> list[Segment]:
    if cursor.instance is None:
        return segments
    return [segment for segment in segments if segment.instance == cursor.instance]


def ran_before(log: PodLog) -> bool:
    """Whether there was a try before the last."""
    return _previous_instance(list_segments(log.folder)) != _NEVER


def _previous_instance(segments: list[Segment]) -> tuple[int, int]:
    """The try before the last; one that never was, where there is no such."""
    instances = sorted({segment.instance for segment in segments})
    return instances[-2] if len(instances) > 1 else _NEVER


_NEVER = (-1, -1)


def _start_since(segments: list[Segment], since: str) -> Position | None:
    """The last segment that began before then: earlier ones need not be read."""
    for segment in reversed(segments):
        if any(record.at < since for record in _first_records(segment)):
            return segment.beginning
    return None


def _first_records(segment: Segment) -> list[Record]:
    try:
        for record in read_records(segment, segment.start):
            return [record]
    except FileNotFoundError:
        pass
    return []


def _length(parts: list[Record]) -> int:
    return sum(len(part.text) for part in parts)


def _is_old(record: Record) -> bool:
    return record.at < timestamp(datetime.now(UTC) - PATIENCE)


def _amount(size: int) -> str:
    if size < 10 * 1024:
        return f"{size} bytes"
    return f"{size / 1024:.0f} KiB" if size < 10 * 1024**2 else f"{size / 1024**2:.0f} MiB"
