"""Writes a run's log as numbered segments, the oldest of which give way to the newest.

A segment is named `<restart>-<segment>-<start>.log`. Segments count through all restarts of a run;
`start` is the byte at which it begins in the whole log, so a reader that was overtaken can tell
exactly how much it missed.
"""

from __future__ import annotations

import os

#: A replica that restarts for weeks leaves a small segment each time.
MOST_FILES = 64


class Segments:
    def __init__(self, folder: str, segment_bytes: int, segments: int) -> None:
        self._folder = folder
        self._segment_bytes = segment_bytes
        self._most_bytes = segment_bytes * segments
        self._kept: list[tuple[str, int]] = []
        self._number = 0
        self._restart = 0
        self._start = 0
        self._size = 0
        self._fd = -1
        #: Records lost because the disk was full.
        self.dropped = 0
        os.makedirs(folder, exist_ok=True)

    def begin_restart(self, restart: int) -> None:
        """What comes now belongs to another try of the replica, even if it never says a word."""
        self._close()
        self._restart = restart
        try:  # noqa: SIM105 - contextlib is not worth its import here
            self._open()
        except OSError:
            pass  # a full disk: tried again with the first record

    def write(self, records: bytes) -> None:
        """Append whole records. Never blocks on a full disk: drops, and counts."""
        while records:
            room = self._segment_bytes - self._size
            cut = len(records)
            if cut > room:
                cut = records.rfind(b"\n", 0, max(room, 0)) + 1
                if cut == 0:
                    if self._size:
                        self._close()
                        continue
                    cut = records.find(b"\n") + 1  # one record larger than a segment
            self._append(records[:cut])
            records = records[cut:]

    def _append(self, records: bytes) -> None:
        written = 0
        try:
            if self._fd < 0:
                self._open()
            while written < len(records):
                written += os.write(self._fd, records[written:])
        except OSError:
            # Keep whole records only: a torn one would never end.
            whole = records.rfind(b"\n", 0, written) + 1
            self.dropped += records.count(b"\n", whole)
            if self._fd >= 0 and written > whole:
                os.ftruncate(self._fd, self._size + whole)
            written = whole
        self._size += written

    def _open(self) -> None:
        path = f"{self._folder}/{self._restart}-{self._number}-{self._start}.log"
        flags = os.O_CREAT | os.O_WRONLY | os.O_APPEND
        self._fd = os.open(path, flags, 0o644)
        self._path = path
        self._number += 1
        self._make_room()

    def _make_room(self) -> None:
        """The open segment may fill up, and all of them together stay within the limit."""
        while self._kept and (
            sum(size for _, size in self._kept) + self._segment_bytes > self._most_bytes
            or len(self._kept) >= MOST_FILES
        ):
            path, _ = self._kept.pop(0)
            try:  # noqa: SIM105 - contextlib is not worth its import here
                os.unlink(path)
            except OSError:
                pass

    def _close(self) -> None:
        if self._fd < 0:
            return
        os.close(self._fd)
        self._kept.append((self._path, self._size))
        self._start += self._size
        self._fd, self._size = -1, 0

    def close(self) -> None:
        self._close()
