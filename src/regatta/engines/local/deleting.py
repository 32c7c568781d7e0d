"""What a person deletes: by name, with every run that had it, or many at once.

Of what has ended the folder goes first, which on a full disk makes the room for the rest; of what
still runs the loop removes it when that has ended. Where another program takes that room, there is
the room that is kept for it, and where that is used up, what was removed and what is left is said.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from regatta.api.errors import DiskFull
from regatta.controller.changes import no_such_job
from regatta.engines.inventory import Removal
from regatta.engines.local.apply import delete_pod, mark_deleting
from regatta.engines.local.clock import Clock
from regatta.engines.local.home import Home
from regatta.engines.local.loop import Loop
from regatta.engines.local.on_behalf.own_folders import remove_job
from regatta.engines.local.replicas.leftovers import left_of, runs_with_left
from regatta.engines.local.store.database import Store
from regatta.engines.local.store.disk_full import has_room_at_a_glance
from regatta.engines.local.store.records import JobRecord
from regatta.engines.local.store.writes import Transaction

#: Jobs and runs that one call deletes: enough to be fast, few enough to hold up nobody.
AT_ONCE = 500
#: And where their rows may find less room than they need: few enough for the room that is kept.
AT_ONCE_WHEN_FULL, ROOM_FOR_ROWS = 10, 8 * 1024 * 1024


class Deleting:
    """Calls come from any thread."""

    def __init__(self, home: Home, store: Store, loop: Loop, clock: Clock) -> None:
        self._home, self._store, self._loop, self._clock = home, store, loop, clock

    def delete(self, namespace: str, name: str) -> None:
        """The job, and every run of that name; where only records have the name, these."""
        read = self._store.read
        record = read.job_named(namespace, name)
        if record is None and not read.runs(namespace, name, limit=1):
            raise no_such_job(namespace, name)
        uids = [*([record.uid] if record else []), *read.replaced(namespace, name)]
        emptied = self._emptied(uids)

        def forget(tx: Transaction) -> None:
            self._forget(tx, uids, emptied)
            tx.remove_runs_named(namespace, name)

        self._write(forget, uids, emptied)
        if record is not None:
            self._wait_until_gone(record.uid)

    def delete_many(self, namespace: str, live: bool, ended_before: datetime | None) -> Removal:
        """The ended ones first, a batch at a time; with the last of them those that live."""
        most = (
            AT_ONCE if has_room_at_a_glance(self._home.path, ROOM_FOR_ROWS) else AT_ONCE_WHEN_FULL
        )
        ended = dict(self._store.read.ended_in(namespace, ended_before, most))
        emptied = self._emptied(ended)
        uids = list(ended)
        done = Removal()

        def forget(tx: Transaction) -> None:
            nonlocal done
            slow = self._forget(tx, ended, emptied)
            current = sum(ended.values()) - sum(not record.superseded for record in slow)
            left = tx.count_ended_in(namespace, ended_before)
            if live and not left:
                doomed = [record.uid for record in tx.unfinished(namespace)]
                uids.extend(doomed)
                slow += self._forget(tx, doomed, ())
            done = Removal(
                jobs=current,
                runs=sum(not current for current in ended.values()),
                ending={record.job.name: record.uid for record in slow if not record.superseded},
                left=left,
            )

        self._write(forget, uids, emptied)
        return done

    def _emptied(self, uids: Iterable[str]) -> dict[str, bool]:
        """Those of which nothing runs and no folder is left; by uid whether there was one."""
        over = list(filter(self._is_over, uids))
        self._intend(over)
        emptied = {}
        for uid in over:
            had = self._home.job(uid).exists()
            if not had or self._removed(uid):
                emptied[uid] = had
        return emptied

    def _intend(self, uids: list[str]) -> None:
        """On record before the first folder goes, so that whoever comes after a server that was
        killed meanwhile goes on with it. On a full disk the folders come first: they make the room
        for any record."""
        with suppress(DiskFull), self._store.write() as tx:
            self._forget(tx, uids, ())

    def _is_over(self, uid: str) -> bool:
        record = self._store.read.job(uid)
        return record is None or (record.job.finished and not self._store.read.has_live_pods(uid))

    def _removed(self, uid: str) -> bool:
        folder = self._home.job(uid)
        if any(map(left_of, runs_with_left(folder))):
            return False
        gone = remove_job(folder) is None
        self._store.claim_room()
        return gone

    def _forget(
        self, tx: Transaction, uids: Iterable[str], emptied: Collection[str]
    ) -> list[JobRecord]:
        """The jobs among them of which something still has to end, or to go."""
        now = self._clock.now().wall
        slow = []
        for uid in uids:
            record = tx.job(uid)
            tx.remove_run(uid)
            if record is None:
                continue
            if uid in emptied:
                tx.remove_job(uid)
                continue
            slow.append(record)
            mark_deleting(tx, record.job, now)
            for pod in tx.pods(uid):
                delete_pod(tx, pod, now)
        return slow

    def _write(
        self, forget: Callable[[Transaction], None], uids: list[str], emptied: dict[str, bool]
    ) -> None:
        try:
            with self._store.write(making_room=True) as tx:
                forget(tx)
        except DiskFull:
            self._store.spend_reserve()
            try:
                with self._store.write(making_room=True) as tx:
                    forget(tx)
            except DiskFull as full:
                if removed := sum(emptied.values()):
                    raise _half_done(self._home.path, removed) from full
                raise
        self._store.keep_room()
        self._loop.look_at(*uids)

    def _wait_until_gone(self, uid: str, timeout: float = 2.0) -> None:
        """A list right after a delete no longer shows it, unless its processes are slow to end."""
        feed = self._store.feed
        deadline = self._clock.monotonic() + timeout
        while (left := deadline - self._clock.monotonic()) > 0:
            version = feed.version
            record = self._store.read.job(uid)
            if record is None or self._store.read.has_live_pods(uid):
                return
            feed.wait(version, left)


def _half_done(folder: Path, removed: int) -> DiskFull:
    logs, them = (
        ("the logs of 1 run", "it") if removed == 1 else (f"logs of {removed} runs", "them")
    )
    return DiskFull(
        f"the disk that holds {folder} is full: {logs} were removed, but another program took the "
        f"room, and what is on record about {them} is still there. Make room there, and delete "
        f"{them} again."
    )
