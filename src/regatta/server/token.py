"""The word that opens the door, as the file has it now.

Whoever can write the state folder is the owner: a token that they put there is the token from then
on, and where they removed the file there is a new one. No restart is needed for either.
"""

from __future__ import annotations

import hmac
import logging

from regatta.api.errors import UnusableFile
from regatta.daemon.server_files import ServerFiles

log = logging.getLogger(__name__)

_Seen = tuple[int, int, int] | None


class LiveToken:
    def __init__(self, files: ServerFiles) -> None:
        """Makes one where there is none. Raises UnusableFile."""
        self._files = files
        self._value = files.token().encode()
        self._seen = self._look()

    def opens(self, given: str) -> bool:
        """A wrong word is a reason to look: a client may have met a file that is newer."""
        if hmac.compare_digest(given.encode(), self._value):
            return True
        return self.refresh() and hmac.compare_digest(given.encode(), self._value)

    def refresh(self) -> bool:
        """Whether it is another one now."""
        seen = self._look()
        if seen is not None and seen == self._seen:
            return False
        before = self._value
        try:
            self._value = self._files.token().encode()
        except (UnusableFile, OSError) as unusable:  # the one before goes on
            if seen != self._seen:
                log.warning("%s", unusable)
            self._seen = seen
            return False
        self._seen = self._look()
        if self._value != before:
            log.info("the token in %s is another one now", self._files.token_file)
        return self._value != before

    def _look(self) -> _Seen:
        try:
            found = self._files.token_file.stat()
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size
