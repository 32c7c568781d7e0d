"""A disk with no room left: how it is told, and the little room kept for making more.

To delete a job is to write first: its rows change before its folder goes. So a file of no use is
kept, which a delete on a full disk may spend.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from regatta.api.errors import DiskFull

RESERVE_BYTES = 1024 * 1024


@contextlib.contextmanager
def telling_a_full_disk(folder: Path) -> Iterator[None]:
    """Raises DiskFull in place of what SQLite and the system call it."""
    try:
        yield
    except (OSError, sqlite3.OperationalError) as error:
        if not _means_full(error, folder):
            raise
        raise DiskFull(
            f"the disk that holds {folder} is full, so nothing was changed. Delete old jobs with "
            "their logs (`regatta delete NAME`), or make room there, and try again."
        ) from error


def _means_full(error: OSError | sqlite3.OperationalError, folder: Path) -> bool:
    if isinstance(error, OSError):
        return error.errno in (errno.ENOSPC, errno.EDQUOT)
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_IOERR:  # also what SQLite says when its shared memory cannot grow
        return os.statvfs(folder).f_bavail == 0
    return code == sqlite3.SQLITE_FULL


class Reserve:
    def __init__(self, path: Path) -> None:
        self._path = path

    def keep(self) -> None:
        """Take the room, unless it is taken; quietly not where there is none."""
        with contextlib.suppress(OSError):
            descriptor = os.open(self._path, os.O_CREAT | os.O_WRONLY, 0o600)
            try:
                os.posix_fallocate(descriptor, 0, RESERVE_BYTES)
            finally:
                os.close(descriptor)

    def spend(self) -> None:
        self._path.unlink(missing_ok=True)
