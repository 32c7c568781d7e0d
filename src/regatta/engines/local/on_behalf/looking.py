"""How the files that a submission names are looked at.

By whoever may know: this process where it runs as the one who submits. An engine that runs as
somebody else does not look at all, and lets the replica find out as the account that it is: what
root sees says nothing of what the account may use, and is none of the account's business.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path


class Looking:
    """As whom this process runs."""

    #: What it says of links and rights is so.
    sees = True

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def is_folder(self, path: str) -> bool:
        return os.path.isdir(path)

    def may_read(self, path: str) -> bool:
        """A folder has to be entered as well."""
        way = os.R_OK | os.X_OK if os.path.isdir(path) else os.R_OK
        return os.access(path, way)

    def closed_at(self, path: str) -> str:
        """The first folder on the way to it, itself included, that cannot be entered; empty: it can
        be reached, or is not there."""
        way = Path(os.path.realpath(path))
        for folder in (*reversed(way.parents), way):
            if os.path.isdir(folder) and not os.access(folder, os.X_OK):
                return str(folder)
        return ""

    def find(self, program: str, path: str) -> str | None:
        return shutil.which(program, path=path)

    def resolved(self, path: str) -> str:
        return os.path.realpath(path)


class NotLooking(Looking):
    """All is taken to be as the submission says; links are not known to be any."""

    sees = False

    def exists(self, path: str) -> bool:
        return True

    def is_folder(self, path: str) -> bool:
        return True

    def may_read(self, path: str) -> bool:
        return True

    def closed_at(self, path: str) -> str:
        return ""

    def find(self, program: str, path: str) -> str | None:
        return None

    def resolved(self, path: str) -> str:
        return os.path.normpath(path)
