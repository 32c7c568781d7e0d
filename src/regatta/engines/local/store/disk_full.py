"""A disk with no room left: how it is told, and the little room kept for making more.

To delete a job is to write: its rows go, too. So room is kept behind the end of the database's log
(`RoomAhead`), where no other program can take it, for what makes room. And to open a database is to
write too, beside it: for a server that starts on a full disk a file of no use is kept (`Reserve`).
"""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path

from regatta.api.errors import DiskFull
from regatta.engines.local.supervisor.linux import take_room

#: Room for the rows of some hundred jobs to be removed.
AHEAD_BYTES = 1024 * 1024
RESERVE_BYTES = 1024 * 1024
#: Where there is not so much, a part of it; less than this is of no use.
LEAST_BYTES = 64 * 1024
#: Enough to open the store and for a server's own files.
ROOM_TO_START = 256 * 1024
#: Enough for the files of a replica, and for its first lines.
ROOM_FOR_REPLICA = 128 * 1024
#: Bytes and files that no disk runs out of within a moment.
PLENTY, PLENTY_OF_FILES = 256 * 1024 * 1024, 10_000

WHAT_HELPS = "Delete old jobs with their logs (`regatta delete NAME`), or make room there"
#: What SQLite says of a full disk when it is not a page that found no room: its shared memory
#: cannot grow, or a file beside the database cannot be made.
_PERHAPS_FULL = (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN)


@contextlib.contextmanager
def telling_a_full_disk(folder: Path) -> Iterator[None]:
    """Raises DiskFull in place of what SQLite and the system call it."""
    try:
        yield
    except (OSError, sqlite3.OperationalError) as error:
        if not _means_full(error, folder):
            raise
        raise nothing_changed(folder) from error


def nothing_changed(folder: Path) -> DiskFull:
    return DiskFull(
        f"the disk that holds {folder} is full, so nothing was changed. {WHAT_HELPS}, and try "
        "again."
    )


def _means_full(error: OSError | sqlite3.OperationalError, folder: Path) -> bool:
    if isinstance(error, OSError):
        return says_full(error)
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code == sqlite3.SQLITE_FULL or (code in _PERHAPS_FULL and not has_room(folder))


def has_room(folder: Path, wanted: int = ROOM_TO_START) -> bool:
    """Whether so many bytes could be written there now. Tried, because only the disk itself knows
    of quotas, of files that there may still be, and of blocks that are kept for root."""
    try:
        with tempfile.TemporaryFile(dir=folder) as probe:
            os.posix_fallocate(probe.fileno(), 0, wanted)
    except OSError as error:
        return not says_full(error)
    return True


def has_room_at_a_glance(folder: Path, wanted: int) -> bool:
    """For what happens often: nothing is tried where the disk says that it has plenty. A quota that
    it does not tell of is met by whoever writes then."""
    found = os.statvfs(folder)
    if found.f_bavail * found.f_frsize > PLENTY + wanted and found.f_favail > PLENTY_OF_FILES:
        return True
    return has_room(folder, wanted)


def says_full(error: OSError) -> bool:
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


class RoomAhead:
    """Behind the end of the file that SQLite appends to, and without making it longer.

    Ordinary writes take the room they need from the disk and leave this; what makes room uses it.
    """

    def __init__(self, log: Path) -> None:
        self._log = log
        #: Bytes that ordinary writes have to leave.
        self._level = 0

    def keep(self) -> None:
        """As much as there can be; never more than is left for everything else."""
        for level in _parts(AHEAD_BYTES):
            missing = level - self._had
            if missing <= 0 or (has_room(self._log.parent, missing + level) and self._take(level)):
                self._level = max(level, self._level)
                return

    def claim(self) -> None:
        """Room that was freed a moment ago, before another program has it."""
        for level in _parts(AHEAD_BYTES):
            if self._take(level):
                self._level = max(level, self._level)
                return

    def is_left(self) -> bool:
        """Whether an ordinary write leaves what is kept: what the last one took comes back."""
        return self._take(self._level)

    @property
    def _had(self) -> int:
        try:
            found = self._log.stat()
        except FileNotFoundError:
            return 0
        return found.st_blocks * 512 - found.st_size

    def _take(self, level: int) -> bool:
        if self._had >= level:
            return True
        try:
            # SQLite locks its other files, never this one: closing it here lets go of nothing.
            file = os.open(self._log, os.O_WRONLY)
        except FileNotFoundError:
            return True  # nothing was ever written
        try:
            return take_room(file, os.fstat(file).st_size, level)
        finally:
            os.close(file)


class Reserve:
    def __init__(self, path: Path) -> None:
        self._path = path

    def keep(self) -> None:
        """Take the room, unless it is taken; never more than is left for everything else."""
        any(self._take(size) for size in _parts(RESERVE_BYTES))

    def _take(self, size: int) -> bool:
        try:
            descriptor = os.open(self._path, os.O_CREAT | os.O_WRONLY, 0o600)
        except OSError:
            return False
        try:
            had = os.fstat(descriptor).st_size
            if had >= size:
                return True
            try:
                os.posix_fallocate(descriptor, 0, 2 * size)
            except OSError:
                os.ftruncate(descriptor, had)
                return False
            os.ftruncate(descriptor, size)
            return True
        finally:
            os.close(descriptor)

    def spend(self) -> bool:
        """Give the room back to the disk; False where none was kept."""
        try:
            kept = self._path.stat().st_size
            self._path.unlink()
        except FileNotFoundError:
            return False
        return kept > 0


def _parts(most: int) -> Iterator[int]:
    """All of it, half of it, and so on."""
    while most >= LEAST_BYTES:
        yield most
        most //= 2
