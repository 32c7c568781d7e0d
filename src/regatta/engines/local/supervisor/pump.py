"""Turns what a replica prints into log records.

A record ends at a newline, a carriage return, 16 KiB or 200 ms of silence: progress bars and
endless lines must not hold anything up. Each is one line of the log,
`<time> <stdout|stderr|regatta> <tags> <text>`, tags as in the container runtime's format: `F` ends
a line, `P` does not, and `:c` says that the record goes on where the one just before it stopped.
`regatta` marks our own remarks. Work is done on whole chunks, never line by line, because a
talkative program must not wait for its log.
"""

from __future__ import annotations

import time

from .segments import Segments

LONGEST_RECORD = 16 * 1024
SILENCE_SECONDS = 0.2
#: What a failure shows of the last output, in bytes.
LAST_WORDS = 4096


def timestamp(nanoseconds: int = 0) -> str:
    seconds, rest = divmod(nanoseconds or time.time_ns(), 1_000_000_000)
    year, month, day, hour, minute, second, *_ = time.gmtime(seconds)
    return f"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{rest:09}Z"


class Source:
    """One stream of one process; `label` stands before the lines of all but the first."""

    def __init__(self, stream: str, label: str = "") -> None:
        self.stream = stream.encode()
        self.label = label.encode("utf-8", "replace")
        #: What has come of a record that has not ended.
        self.pending = b""
        #: When its last byte came.
        self.fresh_at = 0.0
        #: A first part of the record is in the log already.
        self.begun = False
        self.after_return = False


class Pump:
    def __init__(self, segments: Segments) -> None:
        self._segments = segments
        self._last: Source | None = None
        #: Records that found no room, since the last that did.
        self._dropped = 0
        #: What is kept of the last output: more than is shown, where some of it is to be hidden.
        self.words_kept = LAST_WORDS
        self.last_words = b""

    def feed(self, source: Source, chunk: bytes) -> None:
        chunk = self._without_returns(source, chunk)
        cut = chunk.rfind(b"\n") + 1
        if cut:
            whole, source.pending = source.pending + chunk[:cut], chunk[cut:]
            self._keep_last_words(whole)
            self._write_lines(source, whole)
        else:
            source.pending += chunk
        while len(source.pending) >= LONGEST_RECORD:
            piece = source.pending[:LONGEST_RECORD]
            source.pending = source.pending[LONGEST_RECORD:]
            self._keep_last_words(piece)
            self._write_begun(source, piece)
        if source.pending:
            source.fresh_at = time.monotonic()

    def flush_silent(self, source: Source, now: float) -> float | None:
        """Write what has waited long enough; otherwise how long it may still wait."""
        if not source.pending:
            return None
        left = source.fresh_at + SILENCE_SECONDS - now
        if left > 0:
            return left
        piece, source.pending = source.pending, b""
        self._keep_last_words(piece)
        self._write_begun(source, piece)
        return None

    def finish(self, source: Source) -> None:
        """The stream has ended: so has its last line."""
        if source.pending or source.begun:
            self._keep_last_words(source.pending + b"\n")
            self._write_lines(source, source.pending + b"\n")
            source.pending = b""

    def remark(self, text: str) -> None:
        self._last = None
        self._write(_ours(text))

    def close(self) -> None:
        """Nothing more comes."""
        self._tell_dropped()
        self._segments.close()

    def begin_restart(self, restart: int) -> None:
        self._tell_dropped()
        self._segments.begin_restart(restart)
        self._last = None
        self.last_words = b""

    def _without_returns(self, source: Source, chunk: bytes) -> bytes:
        """A carriage return ends a record like a newline; several, or one beside a newline, are
        one end, so that a bar drawn with them leaves no empty lines."""
        if source.after_return and chunk[:1] == b"\n":
            chunk = chunk[1:]
        source.after_return = False
        if b"\r" not in chunk:
            return chunk
        source.after_return = chunk.endswith(b"\r")
        while b"\r\r" in chunk:
            chunk = chunk.replace(b"\r\r", b"\r")
        chunk = chunk.replace(b"\r\n", b"\n").replace(b"\n\r", b"\n")
        if chunk[:1] == b"\r" and not source.pending and not source.begun:
            chunk = chunk[1:]
        return chunk.replace(b"\r", b"\n")

    def _write_lines(self, source: Source, lines: bytes) -> None:
        if source.begun:
            end = lines.index(b"\n")
            self._write_long(source, lines[:end])
            lines = lines[end + 1 :]
        if not lines:
            return
        if len(lines) > LONGEST_RECORD and max(map(len, lines.split(b"\n"))) > LONGEST_RECORD:
            for line in lines[:-1].split(b"\n"):
                self._write_long(source, line)
            return
        prefix = self._prefix(source, b"F")
        self._last = source
        self._write(prefix + lines[:-1].replace(b"\n", b"\n" + prefix) + b"\n")

    def _write_long(self, source: Source, line: bytes) -> None:
        while len(line) > LONGEST_RECORD:
            self._write_begun(source, line[:LONGEST_RECORD])
            line = line[LONGEST_RECORD:]
        if source.begun:
            self._write_rest(source, line)
        else:
            self._last = source
            self._write(self._prefix(source, b"F") + line + b"\n")

    def _write_begun(self, source: Source, piece: bytes) -> None:
        goes_on = source.begun and self._last is source
        prefix = self._prefix(source, b"P:c") if goes_on else self._prefix(source, b"P")
        source.begun, self._last = True, source
        self._write(prefix + piece + b"\n")

    def _write_rest(self, source: Source, piece: bytes) -> None:
        """The end of a record whose beginning is written. If others spoke since, it cannot be
        joined any more and stands for itself; then an empty rest says nothing."""
        goes_on = self._last is source
        source.begun, self._last = False, source
        if goes_on:
            self._write(self._prefix(source, b"F:c") + piece + b"\n")
        elif piece:
            self._write(self._prefix(source, b"F") + piece + b"\n")

    def _prefix(self, source: Source, tags: bytes) -> bytes:
        head = b"%s %s %s " % (timestamp().encode(), source.stream, tags)
        return head if tags.endswith(b":c") else head + source.label

    def _keep_last_words(self, text: bytes) -> None:
        self.last_words = (self.last_words + text[-self.words_kept :])[-self.words_kept :]

    def _write(self, records: bytes) -> None:
        """What follows dropped records comes with the remark on them, or is dropped too."""
        told = self._dropped > 0
        if told:
            records = self._dropped_remark() + records
        lost = self._segments.write(records)
        if told and lost == records.count(b"\n"):
            self._dropped += lost - 1
            return
        self._dropped = lost
        if lost:
            self._segments.remark(_ours("the disk is full: lines are dropped from here on"))

    def _tell_dropped(self) -> None:
        if self._dropped and self._segments.remark(self._dropped_remark()):
            self._dropped = 0

    def _dropped_remark(self) -> bytes:
        lines = "1 line was" if self._dropped == 1 else f"{self._dropped} lines were"
        return _ours(f"{lines} dropped: the disk was full")


def _ours(text: str) -> bytes:
    return f"{timestamp()} regatta F {text}\n".encode("utf-8", "replace")
