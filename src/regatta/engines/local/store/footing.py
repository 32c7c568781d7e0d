"""Whether the database is still where it was opened.

Whoever removes the files of a database that is in use takes nothing from those who have them open:
they would go on, and what they write would be gone with them. But as long as they are open, all of
it can be written again.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from pathlib import Path

from regatta.api.errors import BrokenDatabase

log = logging.getLogger(__name__)


class Footing:
    """Of a database that is open in WAL mode, whose files therefore keep their numbers."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._opened = {file: _number(file) for file in (path, _beside(path, "-wal"))}

    @property
    def is_firm(self) -> bool:
        """Raises BrokenDatabase where another database is in its place, or the folder is gone."""
        now = {file: _number(file) for file in self._opened}
        if now == self._opened:
            return True
        if now[self._path] not in (None, self._opened[self._path]):
            raise BrokenDatabase(
                f"the job database {self._path} is another file than the one in use, and nothing "
                "is written to either; `regatta server stop`, and the next command begins with "
                "what is there now"
            )
        if not self._path.parent.exists():
            raise BrokenDatabase(f"the state folder {self._path.parent} was removed")
        return False


def write_again(connection: sqlite3.Connection, path: Path) -> None:
    """Put there what is open here. Who has the former files open must open these."""
    log.error("%s was removed while it was in use; writing it again", path)
    draft = _beside(path, ".again")
    draft.unlink(missing_ok=True)
    copy = sqlite3.connect(draft)
    try:
        connection.backup(copy)
    finally:
        copy.close()
    with open(draft, "rb") as written:
        os.fsync(written.fileno())
    for rest in ("-wal", "-shm"):
        _beside(path, rest).unlink(missing_ok=True)
    draft.replace(path)


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)


def _number(file: Path) -> tuple[int, int] | None:
    try:
        found = file.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino
