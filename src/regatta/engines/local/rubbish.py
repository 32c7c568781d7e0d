"""What jobs leave behind on disk, and whose it was when it cannot be removed.

Of a deleted job the folder goes before the rows: on a full disk it makes the room for removing
those, and a job that is still listed says what stands in the way. A process that did not die of
SIGKILL stands in the way, too.
"""

from __future__ import annotations

import errno
import logging
import sqlite3
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from regatta.api.errors import DatabaseLocked, DiskFull
from regatta.controller.plan import Event
from regatta.engines.inventory import NOT_REMOVED
from regatta.engines.local.clock import Clock
from regatta.engines.local.home import Home
from regatta.engines.local.notices import Notices
from regatta.engines.local.on_behalf.own_folders import remove_job
from regatta.engines.local.replicas.leftovers import in_words, left_of, runs_with_left
from regatta.engines.local.replicas.runtime import Runtime
from regatta.engines.local.replicas.volumes import remove_scratch
from regatta.engines.local.store.database import Store

log = logging.getLogger(__name__)

#: How soon a folder that something was still being written to is tried again.
SOON = 0.1
#: How soon one that cannot be removed is.
LATER = 5.0
#: How long another try to end a process that did not die may hold up the engine.
TRY_SECONDS = 0.3


class Rubbish:
    """Used by the engine's own thread only."""

    def __init__(
        self, home: Home, store: Store, runtime: Runtime, notices: Notices, clock: Clock
    ) -> None:
        self._home, self._store, self._notices, self._clock = home, store, notices, clock
        self._runtime = runtime
        #: Jobs whose folders are to go, and when to try.
        self._due: dict[str, float] = {}

    def add(self, job_uids: Iterable[str]) -> None:
        for uid in job_uids:
            self._due.setdefault(uid, 0.0)

    def next_look(self) -> float | None:
        return min(self._due.values(), default=None)

    def remove(self) -> list[str]:
        """Jobs whose folders are gone now."""
        now = self._clock.monotonic()
        return [uid for uid, due in list(self._due.items()) if due <= now and self._gone(uid, now)]

    def _gone(self, uid: str, now: float) -> bool:
        if left := self._end_left(uid):
            self._due[uid] = now + LATER
            self._notices.cannot_end(uid, left)
            return False
        failure = remove_job(self._home.job(uid))
        if failure is None:
            del self._due[uid]
            self._notices.removed(uid)
            return True
        if failure.errno == errno.ENOTEMPTY:
            # A supervisor that has just told its end may still write.
            self._due[uid] = now + SOON
            return False
        self._due[uid] = now + LATER
        self._notices.cannot_remove(uid, failure)
        return False

    def _end_left(self, uid: str) -> str:
        """What of the job lives though it has ended, in words, after another try to end it."""
        words = []
        for run in runs_with_left(self._home.job(uid)):
            if left_of(run):
                self._runtime.sweep(f"{run.parent.parent.name}/{run.name}", run, TRY_SECONDS)
            words.append(in_words(left_of(run)))
        return "; ".join(filter(None, words))

    def remove_scratch(self, runs: Iterable[Path]) -> None:
        """What the emptyDir volumes of runs that have ended hold."""
        remove_scratch(runs, self._tell_left)

    def _tell_left(self, run: Path, failure: OSError) -> None:
        """From a thread of its own."""
        job_uid = self._home.job_of(run)
        message = (
            f"what an emptyDir volume holds cannot be removed: {failure.filename} "
            f"({failure.strerror}). Remove it as a user who may."
        )
        log.warning("job %s: %s", job_uid, message)
        event = Event(type="Warning", reason=NOT_REMOVED, message=message)
        lost = suppress(DatabaseLocked, DiskFull, sqlite3.Error)  # perhaps it is closed
        with lost, self._store.write() as tx:
            if tx.job(job_uid) is not None:
                tx.add_event(job_uid, event, self._clock.now().wall)
