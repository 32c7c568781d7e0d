"""A job database that another program holds locked: how it is told.

We wait for a while, since most who lock it let go in a moment. One that does not is no mistake of
ours, and only whoever runs it can end it.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from regatta.api.errors import DatabaseLocked

_LOCKED = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


@contextlib.contextmanager
def telling_a_lock(path: Path) -> Iterator[None]:
    """Raises DatabaseLocked in place of what SQLite calls it."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF not in _LOCKED:
            raise
        raise locked(path) from None


def locked(path: Path) -> DatabaseLocked:
    return DatabaseLocked(
        f"another program holds the job database {path} locked, so nothing can be written there. "
        f"End what it does (a backup, a transaction left open; `fuser -v {path}` names who has it "
        "open), and try again. Jobs run on."
    )
