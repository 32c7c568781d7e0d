"""Deleting a job: that somebody wants it goes on record, then the engine deletes the job, then its
records go, with those of earlier runs of its name and with what was made for them.

Whatever dies or is away in between, job and records are gone in the end, or neither is: what could
not be finished is a loose end (`submitting/loose_ends`).
"""

from __future__ import annotations

import logging
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
from regatta.server.records.job_rows import JobRow, ids_of_runs, runs_until
from regatta.server.records.job_writes import (
    delete_record,
    mark_delete,
    mark_deletes,
    unmark_delete,
)
from regatta.server.records.team_database import Database

log = logging.getLogger(__name__)


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

    async def delete(self, row: JobRow) -> None:
        """The caller has its turn. What it raises with a status of 500 and more may be a loose
        end."""
        with suppress(RecordsFull):  # the engine makes room by it
            await self._database.run(mark_delete, row.id, self._now())
        try:
            with suppress(JobNotFound):  # only the record still tells of it
                await self._engine.delete(row.namespace, row.engine_name)
        except RegattaError as why:
            locked = isinstance(why, DatabaseLocked)
            going = await self._going(row.namespace) if locked else set()
            if _may_be_refused(why) and row.engine_uid not in going:
                await self._database.run(unmark_delete, row.id)
            raise
        await self._forget_all(row)

    async def delete_many(
        self, namespace: str, *, live: bool, ended_before: datetime | None
    ) -> Removal:
        """As the engine does: some at a time. What it raises with a status of 500 and more may be a
        loose end."""
        runs = await self._engine.history(namespace)
        # Of all, since the engine judges once more: one of them may end this moment.
        uids = [run.uid for run in runs]
        ids = await self._database.read(ids_of_runs, self._engine_name, uids)
        wanted = [run.uid for run in runs if _is_wanted(run, live, ended_before)]
        self.underway.update(ids.values())
        try:
            with suppress(RecordsFull):
                await self._mark(ids, wanted, self._now())
            try:
                removal = await self._engine.delete_many(
                    namespace, live=live, ended_before=ended_before
                )
            except RegattaError as why:
                if _may_be_refused(why):
                    with suppress(RegattaError):  # then all of it is a loose end
                        await self._tell_apart(namespace, ids, keep=await self._going(namespace))
                raise
            await self._tell_apart(namespace, ids, gone=removal.ending.values())
            return removal
        finally:
            self.underway.difference_update(ids.values())

    async def _tell_apart(
        self,
        namespace: str,
        ids: Mapping[str, str],
        *,
        gone: Iterable[str] = (),
        keep: Collection[str] = (),
    ) -> None:
        """What of many was deleted, and what was not. `gone`: these, too, though the engine still
        tells of them. `keep`: of these that is not known yet."""
        left = {run.uid for run in await self._engine.history(namespace)}.difference(gone)
        await self._mark(ids, left.difference(keep), None)
        for uid in ids.keys() - left - set(keep):
            with suppress(NoRecord):  # somebody deleted it by its name meanwhile
                await self.forget(ids[uid])

    async def _mark(self, ids: Mapping[str, str], uids: Iterable[str], now: int | None) -> None:
        await self._database.run(mark_deletes, [ids[uid] for uid in uids if uid in ids], now)

    async def _going(self, namespace: str) -> set[str]:
        """The uids of what the engine deletes already."""
        return {job.uid for job in await self._engine.list(namespace) if job.deleting}

    async def go_on(self, row: JobRow) -> bool:
        """With what was begun before. The caller has its turn. False: it is deleted no more."""
        try:
            with suppress(JobNotFound):
                job = await self._engine.get(row.namespace, row.engine_name)
                if job.uid == row.engine_uid:
                    await self._engine.delete(row.namespace, row.engine_name)
                elif await self._is_there(row):  # an earlier run, which goes by itself no more
                    await self._database.run(unmark_delete, row.id)
                    return False
        except RegattaError as why:
            if why.status >= 500:
                raise
            log.warning("%s~%s is not deleted: %s", row.username, row.name, why)
            await self._database.run(unmark_delete, row.id)
            return False
        with suppress(NoRecord):  # somebody was faster
            await self._forget_all(row)
        return True

    async def _is_there(self, row: JobRow) -> bool:
        try:
            runs = await self._engine.history(row.namespace, uid=row.engine_uid or "")
        except JobNotFound:
            return False
        return bool(row.engine_uid and runs)

    async def forget(self, job_id: str) -> None:
        """The record of a run that the engine has deleted."""
        await self._database.run(delete_record, job_id, self._now())
        await self._clear(job_id)

    async def _forget_all(self, row: JobRow) -> None:
        for job_id in await self._database.read(runs_until, row):
            if job_id != row.id:
                with suppress(NoRecord):  # its time was over just now
                    await self.forget(job_id)
        await self.forget(row.id)  # last, so that whoever deletes again finds what is left


def _is_wanted(run: RunView, live: bool, ended_before: datetime | None) -> bool:
    if run.ended_at is None:
        return live
    return ended_before is None or run.ended_at < ended_before


def _may_be_refused(why: RegattaError) -> bool:
    """Whether it says that nothing is deleted, of what is not deleted already."""
    return why.status < 500 or isinstance(why, DatabaseLocked)
