"""Deleting a job: that somebody wants it goes on record, then the engine deletes the job, then its
records go, with those of earlier runs of its name and with what was made for them.

Whatever dies or is away in between, job and records are gone in the end, or neither is: what could
not be finished is a loose end (`submitting/loose_ends`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime

from regatta.api.errors import JobNotFound, NoRecord, RegattaError
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

    async def delete(self, row: JobRow) -> None:
        """The caller has its turn. What it raises with a status of 500 and more is a loose end."""
        await self._database.run(mark_delete, row.id, self._now())
        try:
            with suppress(JobNotFound):  # only the record still tells of it
                await self._engine.delete(row.namespace, row.engine_name)
        except RegattaError as why:
            if why.status < 500:
                await self._database.run(unmark_delete, row.id)
            raise
        await self._forget_all(row)

    async def delete_many(
        self, namespace: str, *, live: bool, ended_before: datetime | None
    ) -> Removal:
        """As the engine does: some at a time. What it raises with a status of 500 and more is a
        loose end."""
        runs = await self._engine.history(namespace)
        wanted = [run.uid for run in runs if _is_wanted(run, live, ended_before)]
        ids = await self._database.read(ids_of_runs, self._engine_name, wanted)
        await self._database.run(mark_deletes, ids.values(), self._now())
        try:
            removal = await self._engine.delete_many(
                namespace, live=live, ended_before=ended_before
            )
            left = {run.uid for run in await self._engine.history(namespace)}
        except RegattaError as why:
            if why.status < 500:
                await self._database.run(mark_deletes, ids.values(), None)
            raise
        left -= set(removal.ending.values())
        await self._database.run(mark_deletes, [ids[uid] for uid in left & ids.keys()], None)
        for uid in ids.keys() - left:
            with suppress(NoRecord):  # somebody deleted it by its name meanwhile
                await self.forget(ids[uid])
        return removal

    async def go_on(self, row: JobRow) -> None:
        """With what was begun before. The caller has its turn."""
        with suppress(JobNotFound):
            job = await self._engine.get(row.namespace, row.engine_name)
            if job.uid == row.engine_uid:
                await self._engine.delete(row.namespace, row.engine_name)
            elif await self._is_there(row):  # an earlier run, which goes by itself no more
                await self._database.run(unmark_delete, row.id)
                return
        await self._forget_all(row)

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
