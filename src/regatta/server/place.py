"""The server's own files, looked after while it serves: anybody may remove any of them.

A server that commands cannot find is of no use and could be ended by hand only. So what can be
written again is, and where its very place is gone it leaves.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import stat
import sys
from collections.abc import Callable
from contextlib import suppress

from regatta.api.errors import RegattaError
from regatta.daemon.halted import end_halted_guardian
from regatta.daemon.server_files import Address, FileLock, ServerFiles, is_held
from regatta.daemon.start import spawn_guardian
from regatta.engines.local.home import HeldFolder
from regatta.server.token import LiveToken

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
#: For the guardian: it is to start the server again.
START_AGAIN = 71
LARGEST_LOG = 8 * 1024 * 1024

Leave = Callable[[int], None]


class Place:
    """Of a server that holds `lock`."""

    def __init__(
        self,
        files: ServerFiles,
        lock: FileLock,
        address: Address,
        *,
        guarded: bool,
        with_token: bool = True,
    ) -> None:
        """`with_token`: else nobody's word opens the server, and there is no file of one."""
        self.files, self._lock, self.address = files, lock, address
        self.guarded = guarded
        self.token = LiveToken(files) if with_token else None
        self._folder = HeldFolder(files.folder)
        self._was_whole = True
        self._complaint = ""

    def close(self) -> None:
        self._folder.close()

    async def keep(self, leave: Leave) -> None:
        """Until cancelled, or until there is nothing left to keep: then `leave` has been called."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            if not self._folder.is_there:
                log.error("%s was removed; leaving", self.files.folder)
                return leave(0)
            if not self._lock.in_place and not self._was_whole:
                log.error("%s was removed; starting again", self.files.server_lock)
                return leave(START_AGAIN)
            try:
                await self._look()
                self._complaint = ""
            except (OSError, RegattaError) as trouble:  # a full disk; or it goes at this moment
                if str(trouble) != self._complaint:
                    log.warning("%s: %s", self.files.folder, trouble)
                self._complaint = str(trouble)

    async def _look(self) -> None:
        opened = self.token is None or self.files.token_file.exists()
        whole = self._lock.in_place and self._says_where and opened
        if not whole and self._was_whole:
            # Whoever removes the folder does it file by file: one more look, and write nothing yet.
            self._was_whole = False
            return
        self._was_whole = whole
        if self.token is not None:
            self.token.refresh()
        if not self._says_where:
            log.warning("%s was removed or overwritten; writing it again", self.files.address)
            self.files.write(self.address)
        if self.guarded:
            await asyncio.to_thread(bound_log, self.files)
            keep_log(self.files)
            await self._keep_guardian()

    async def _keep_guardian(self) -> None:
        """A guardian can be killed too, or halted. A free lock says that there is none: then start
        one."""
        if not is_held(self.files.guardian_lock) or end_halted_guardian(self.files):
            log.warning("the guardian is gone; starting another")
            await asyncio.to_thread(spawn_guardian, self.files, adopt=self.address.pid)

    @property
    def _says_where(self) -> bool:
        written = self.files.read()
        return written is not None and written.pid == self.address.pid


def keep_log(files: ServerFiles) -> None:
    """Output to a log that was removed would fill a disk unseen: it goes to a new one."""
    ours = os.fstat(sys.stderr.fileno())
    if stat.S_ISREG(ours.st_mode) and ours.st_nlink == 0:
        log_file = files.open_log()
        for output in (sys.stdout, sys.stderr):
            os.dup2(log_file, output.fileno())
        os.close(log_file)


def bound_log(files: ServerFiles) -> None:
    """For a server whose output goes to its log."""
    with suppress(OSError):  # there is none yet, or the disk is full
        if files.log.stat().st_size > LARGEST_LOG:
            shutil.copyfile(files.log, files.log.with_suffix(".log.1"))
            # Everybody appends, so they go on at the new end.
            os.truncate(files.log, 0)
