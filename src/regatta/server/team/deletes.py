"""Deleting a job: that somebody wants it goes on record, then the engine deletes the job, then its
records go, with those of earlier runs of its name and with what was made for them.

Whatever dies or is away in between, job and records are gone in the end, or neither is: what could
not be finished is a loose end (`submitting/loose_ends`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import suppress
from datetime import datetime

from regatta.api.errors import (
    DatabaseLocked,
    JobNotFound,
    NoRecord,
    RecordsFull,
    RegattaError,
)
from regatta.engines.base import Engine
from regatta.engines.inventory import Removal, RunView
from regatta.server.records.job_rows import JobRow, ids_of_runs, runs_in, runs_until
from regatta.server.records.job_writes import delete_record, mark_deletes, unmark_deletes
from regatta.server.records.team_database import Database


class Deleting:
    def __init__(
        self,
        database: Database,
        engine: Engine,
        engine_name: str,
        clear: Callable[[str], Awaitable[None]],
        now: Callable[[], int],
    ) -> None:
        """`clear`: removes what was made for a run, by its id."""
        self._database, self._engine, self._engine_name = database, engine, engine_name
        self._clear, self._now = clear, now
        #: Records of which somebody deletes many at this moment.
        self.underway: set[str] = set()
        #: Records of what the engine has deleted, until they are gone: on a full disk nothing else
        #: says so.
        self._owed: set[str] = set()
        #: How often many were deleted, by namespace.
        self._sweeps = Counter[str]()

    async def delete(self, row: JobRow) -> None:
        """The caller has its turn. What it raises with a status of 500 and more may be a loose
        end."""
        marked = await self._mark([row.id])
        try:
            with suppress(JobNotFound):  # only the record still tells of it
                if await has_its_name(self._engine, row):
                    await self._engine.delete(row.namespace, row.engine_name)
        except RegattaError as why:
            locked = isinstance(why, DatabaseLocked)
            going = await self._going(row.namespace) if locked else set()
            if marked is not None and _may_be_refused(why) and row.engine_uid not in going:
                await self._database.run(unmark_deletes, [row.id])
            raise
        await self._forget_all(row)

    async def delete_many(
        self, namespace: str, *, live: bool, ended_before: datetime | None
    ) -> Removal:
        """As the engine does: some at a time. There may be loose ends after it, whatever it
        raises."""
        before = await self._database.read(runs_in, self._engine_name, namespace)
        runs = await self._engine.history(namespace)
        wanted = [run.uid for run in runs if _is_wanted(run, live, ended_before)]
        # The engine judges once more: one of these may end this moment.
        may_be = [run.uid for run in runs if run.ended_at is None and ended_before is None]
        uids = {*wanted, *may_be}
        ids = await self._database.read(ids_of_runs, self._engine_name, uids)
        self.underway.update(ids.values())
        try:
            marked = await self._mark([ids[uid] for uid in wanted if uid in ids]) or ()
            try:
                removal = await self._engine.delete_many(
                    namespace, live=live, ended_before=ended_before
                )
            except RegattaError as why:
                if _may_be_refused(why):
                    with suppress(RegattaError):  # then all of it is a loose end
                        await self._tell_apart(namespace, ids, marked)
                raise
            finally:
                self._sweeps[namespace] += 1
            if ended_before is None:  # what was handed in meanwhile went with the others
                known = await self._database.read(runs_in, self._engine_name, namespace)
                ids |= {uid: known[uid] for uid in known.keys() - before.keys()}
            await self._tell_apart(namespace, ids, marked, removal.ending.values())
            return removal
        finally:
            self.underway.difference_update(ids.values())

    def sweeps(self, namespace: str) -> int:
        return self._sweeps[namespace]

    async def look_after(self, row: JobRow, sweeps: int) -> None:
        """Of a job that was handed in while many may have been deleted: its record came after they
        were told apart. `sweeps`: how many there were before."""
        if self._sweeps[row.namespace] == sweeps:
            return
        with suppress(JobNotFound):
            if not (await self._engine.get(row.namespace, row.engine_name)).deleting:
                return
        await self._forget([row.id])

    async def _tell_apart(
        self,
        namespace: str,
        ids: Mapping[str, str],
        marked: Collection[str],
        ending: Iterable[str] = (),
    ) -> None:
        """What of many was deleted, and what was not. `ending`: it was, though the engine still
        tells of it. What it deletes for another reason stays to be looked at again."""
        going = (await self._going(namespace)).difference(ending)
        left = {run.uid for run in await self._engine.history(namespace)}.difference(ending)
        stays = {ids[uid] for uid in ids.keys() & (left - going)}
        if back := stays.intersection(marked):
            await self._database.run(unmark_deletes, back)
        gone = [ids[uid] for uid in ids.keys() - left - going]
        self._owed.update(gone)
        await self._forget(await self._database.read(runs_until, gone))

    async def _mark(self, job_ids: list[str]) -> list[str] | None:
        """Those that were not marked. None: their disk is full, which is the engine's, too, and
        what it deletes makes room for both."""
        try:
            return await self._database.make_room(mark_deletes, job_ids, self._now())
        except RecordsFull:
            if not self._database.address.is_sqlite:
                raise
            return None

    async def _going(self, namespace: str) -> set[str]:
        """The uids of what the engine deletes already."""
        return {job.uid for job in await self._engine.list(namespace) if job.deleting}

    async def go_on(self, row: JobRow) -> bool:
        """With what was begun before. The caller has its turn. False: it is deleted no more."""
        with suppress(JobNotFound):
            if await has_its_name(self._engine, row):
                await self._engine.delete(row.namespace, row.engine_name)
            elif await self._is_there(row):  # an earlier run, which goes by itself no more
                await self._database.run(unmark_deletes, [row.id])
                return False
        await self._forget_all(row)
        return True

    async def _is_there(self, row: JobRow) -> bool:
        try:
            runs = await self._engine.history(row.namespace, uid=row.engine_uid or "")
        except JobNotFound:
            return False
        return bool(row.engine_uid and runs)

    async def forget(self, job_id: str) -> None:
        """The record of a run that the engine has deleted, after what was made for it: of that
        nothing else tells."""
        await self._clear(job_id)
        await self._database.make_room(delete_record, job_id, self._now())

    async def forget_owed(self) -> None:
        await self._forget(list(self._owed))

    async def _forget_all(self, row: JobRow) -> None:
        self._owed.add(row.id)
        runs = await self._database.read(runs_until, [row.id])
        # Its own last, so that whoever deletes again finds what is left.
        await self._forget([*(job_id for job_id in runs if job_id != row.id), row.id])

    async def _forget(self, job_ids: Iterable[str]) -> None:
        ids = list(job_ids)
        self._owed.update(ids)
        for job_id in ids:
            with suppress(NoRecord):  # somebody deleted it meanwhile, or its time was over
                await self.forget(job_id)
            self._owed.discard(job_id)


async def has_its_name(engine: Engine, row: JobRow) -> bool:
    """Whether the engine's job of this name is the one that is on record, and none that came past
    the server or after a copy of the records that somebody put back. Raises JobNotFound."""
    job = await engine.get(row.namespace, row.engine_name)
    return row.engine_uid in (None, job.uid)


def _is_wanted(run: RunView, live: bool, ended_before: datetime | None) -> bool:
    if run.ended_at is None:
        return live
    return ended_before is None or run.ended_at < ended_before


def _may_be_refused(why: RegattaError) -> bool:
    """Whether it says that nothing is deleted, of what is not deleted already."""
    return why.status < 500 or isinstance(why, DatabaseLocked)
