"""What a person deletes: by name, with every run that had it, or many at once.

Of what has ended the folder goes first, which on a full disk makes the room for the rest; of what
still runs the loop removes it when that has ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime

from regatta.api.errors import DiskFull
from regatta.controller.changes import no_such_job
from regatta.engines.base import Removal
from regatta.engines.local.apply import delete_pod, mark_deleting
from regatta.engines.local.clock import Clock
from regatta.engines.local.home import Home
from regatta.engines.local.loop import Loop
from regatta.engines.local.replicas.leftovers import left_of, runs_with_left
from regatta.engines.local.replicas.removing import remove_tree
from regatta.engines.local.store.database import Store
from regatta.engines.local.store.records import JobRecord
from regatta.engines.local.store.writes import Transaction

#: Jobs and runs that one call deletes: enough to be fast, few enough to hold up nobody.
AT_ONCE = 500


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

        self._write(forget, uids)
        if record is not None:
            self._wait_until_gone(record.uid)

    def delete_many(self, namespace: str, live: bool, ended_before: datetime | None) -> Removal:
        """The ended ones first, a batch at a time; with the last of them those that live."""
        ended = dict(self._store.read.ended_in(namespace, ended_before, AT_ONCE))
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
                slow += self._forget(tx, doomed, set())
            done = Removal(
                jobs=current,
                runs=sum(not current for current in ended.values()),
                ending={record.job.name: record.uid for record in slow if not record.superseded},
                left=left,
            )

        self._write(forget, uids)
        return done

    def _emptied(self, uids: Iterable[str]) -> set[str]:
        """Those of which nothing runs and no folder is left."""
        return {uid for uid in uids if self._is_over(uid) and self._removed(uid)}

    def _is_over(self, uid: str) -> bool:
        record = self._store.read.job(uid)
        return record is None or (record.job.finished and not self._store.read.has_live_pods(uid))

    def _removed(self, uid: str) -> bool:
        folder = self._home.job(uid)
        return not any(map(left_of, runs_with_left(folder))) and remove_tree(folder) is None

    def _forget(self, tx: Transaction, uids: Iterable[str], emptied: set[str]) -> list[JobRecord]:
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

    def _write(self, forget: Callable[[Transaction], None], uids: list[str]) -> None:
        """What makes room may spend the room that is kept for it."""
        try:
            with self._store.write() as tx:
                forget(tx)
        except DiskFull:
            self._store.reserve.spend()
            with self._store.write() as tx:
                forget(tx)
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
