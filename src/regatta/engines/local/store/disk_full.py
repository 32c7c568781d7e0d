"""A disk with no room left: how it is told, and the little room kept for making more.

To delete a job is to write first: its rows change before its folder goes. And to open a database is
to write too, beside it. So a file of no use is kept, which a delete on a full disk may spend, and
so may a server that starts on one.
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

RESERVE_BYTES = 1024 * 1024
#: Where there is not so much, a part of it; less than this is of no use.
LEAST_RESERVE_BYTES = 64 * 1024
#: Enough to open the store and for a server's own files.
ROOM_TO_START = 256 * 1024

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
        raise DiskFull(
            f"the disk that holds {folder} is full, so nothing was changed. {WHAT_HELPS}, and try "
            "again."
        ) from error


def _means_full(error: OSError | sqlite3.OperationalError, folder: Path) -> bool:
    if isinstance(error, OSError):
        return error.errno in (errno.ENOSPC, errno.EDQUOT)
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code == sqlite3.SQLITE_FULL or (code in _PERHAPS_FULL and not has_room(folder))


def has_room(folder: Path, wanted: int = ROOM_TO_START) -> bool:
    """Whether so many bytes could be written there now. Tried, because only the disk itself knows
    of quotas, of files that there may still be, and of blocks that are kept for root."""
    try:
        with tempfile.TemporaryFile(dir=folder) as probe:
            os.posix_fallocate(probe.fileno(), 0, wanted)
    except OSError as error:
        return error.errno not in (errno.ENOSPC, errno.EDQUOT)
    return True


class Reserve:
    def __init__(self, path: Path) -> None:
        self._path = path

    def keep(self) -> None:
        """Take the room, unless it is taken; never more than is left for everything else."""
        size = RESERVE_BYTES
        while size >= LEAST_RESERVE_BYTES and not self._take(size):
            size //= 2

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
