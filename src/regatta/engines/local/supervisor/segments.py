"""Writes a run's log as numbered segments, the oldest of which give way to the newest.

A segment is named `<restart>-<segment>-<start>.log`. Segments count through all restarts of a run;
`start` is the byte at which it begins in the whole log, so a reader that was overtaken can tell
exactly how much it missed.

Room is taken before anything is written, and always a little more behind it: a full disk costs
lines, and that it did is written into that little room, at the place where they are missing.
"""

from __future__ import annotations

import os

#: A replica that restarts for weeks leaves a small segment each time.
MOST_FILES = 64
#: Room behind the last record, for remarks on those that found none.
KEPT = 4096
#: Room is taken in such steps while there is plenty, not anew for each line.
STEP = 64 * 1024


class Segments:
    def __init__(self, folder: str, segment_bytes: int, segments: int) -> None:
        self._folder = folder
        self._segment_bytes = segment_bytes
        self._most_bytes = segment_bytes * segments
        self._kept: list[tuple[str, int]] = []
        self._number = 0
        self._restart = 0
        self._start = 0
        self._open: _Segment | None = None
        os.makedirs(folder, exist_ok=True)
        self._go_on()

    def begin_restart(self, restart: int) -> None:
        """What comes now belongs to another try of the replica, even if it never says a word."""
        self.close()
        self._restart = restart
        self._go_on()

    def write(self, records: bytes) -> int:
        """Append whole records; how many were dropped, the last ones, because the disk is full.
        Never blocks."""
        while records:
            cut = self._fitting(records)
            if cut == 0 or self._open is None:
                if not self._go_on():
                    break
                continue
            written = self._open.append(records[:cut])
            records = records[written:]
            if written < cut:
                break
        return records.count(b"\n")

    def remark(self, record: bytes) -> bool:
        """Into the room that is kept for it; False where there is not even that."""
        return self._open is not None and self._open.put(record) == len(record)

    def _fitting(self, records: bytes) -> int:
        """How much of it goes into the open segment; one too large for any has its own."""
        size = self._open.size if self._open is not None else 0
        room = self._segment_bytes - size
        if len(records) <= room:
            return len(records)
        cut = records.rfind(b"\n", 0, max(room, 0)) + 1
        return cut if cut or size else records.find(b"\n") + 1

    def _go_on(self) -> bool:
        """In another segment. Where the disk has no room for it, the present one stays open."""
        self._make_room()
        start = self._start + (self._open.size if self._open is not None else 0)
        path = f"{self._folder}/{self._restart}-{self._number}-{start}.log"
        try:
            following = _Segment(path, self._segment_bytes)
        except OSError:
            return False
        self.close()
        self._open = following
        self._number += 1
        return True

    def _make_room(self) -> None:
        """The next segment may fill up, and all of them together stay within the limit."""
        kept = list(self._kept)
        if self._open is not None:
            kept.append((self._open.path, self._open.size))
        while self._kept and (
            sum(size for _, size in kept) + self._segment_bytes > self._most_bytes
            or len(kept) >= MOST_FILES
        ):
            path, _ = kept.pop(0)
            self._kept.pop(0)
            try:  # noqa: SIM105 - contextlib is not worth its import here
                os.unlink(path)
            except OSError:
                pass

    def close(self) -> None:
        if self._open is None:
            return
        self._open.close()
        self._kept.append((self._open.path, self._open.size))
        self._start += self._open.size
        self._open = None


class _Segment:
    """One file, open to be written. OSError: it cannot be had, and is not there."""

    def __init__(self, path: str, limit: int) -> None:
        self.path = path
        self.size = 0
        self._most = limit + KEPT
        self._taken = 0
        self._fd = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o644)
        if not self._take(0):
            os.close(self._fd)
            os.unlink(path)
            raise OSError("no room")

    def append(self, records: bytes) -> int:
        """Whole records, as many as there is room for; how many bytes that was."""
        cut = len(records)
        while cut and not self._take(cut):
            cut = records.rfind(b"\n", 0, cut // 2) + 1
        return self.put(records[:cut])

    def put(self, records: bytes) -> int:
        """Where the room is not taken but hoped for."""
        written = 0
        try:
            while written < len(records):
                written += os.write(self._fd, records[written:])
        except OSError:
            # Keep whole records only: a torn one would never end.
            whole = records.rfind(b"\n", 0, written) + 1
            if written > whole:
                os.ftruncate(self._fd, self.size + whole)
            written = whole
        self.size += written
        return written

    def _take(self, length: int) -> bool:
        """Room for so many bytes more, and for remarks behind them."""
        wanted = self.size + length + KEPT
        if wanted <= self._taken:
            return True
        from .linux import take_room  # not before a supervisor knows that it stays

        plenty = min(wanted + STEP, max(wanted, self._most))
        for end in (plenty, wanted):
            if take_room(self._fd, self._taken, end - self._taken):
                self._taken = end
                return True
        return False

    def close(self) -> None:
        try:  # noqa: SIM105 - contextlib is not worth its import here
            os.ftruncate(self._fd, self.size)  # the room that was not used goes back
        except OSError:
            pass
        os.close(self._fd)
