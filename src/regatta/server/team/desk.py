"""The desk: where people's wishes about jobs are met, between the records and the engine.

A job is handed in by writing its record first (`records/submits`), and everything else is asked of
the record: whose it is, and what became of it. An engine knows a job by namespace and name; people
know it by owner and name, as its owner wrote it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

from msgspec.structs import replace

from regatta.api.errors import (
    JobNotFound,
    NoRecord,
    NotPossible,
)
from regatta.api.job import Job
from regatta.engines.base import Accepted, Engine, Preview, Shell, Submission
from regatta.engines.inventory import Removal
from regatta.server.accounts.caller import Caller
from regatta.server.accounts.identity import require_as_before
from regatta.server.accounts.rate_limits import RequestLimits
from regatta.server.accounts.user_groups import peers_of
from regatta.server.accounts.users import spellings_of
from regatta.server.accounts.visibility import (
    EXECUTE,
    Visibility,
    owners_seen,
    require_changeable,
    require_seen,
)
from regatta.server.openpai_errors import no_job
from regatta.server.records.job_lists import JobFilter, JobPage, Order, list_jobs
from regatta.server.records.job_rows import JobRow, job_at, job_of, owners_of
from regatta.server.records.job_writes import (
    add_tag,
    mark_stop,
    remove_tag,
    unmark_stop,
)
from regatta.server.records.team_database import Database
from regatta.server.streams.open_streams import OpenStreams
from regatta.server.team.deletes import Deleting, has_its_name
from regatta.server.team.grounds import Grounds
from regatta.server.team.long_answers import LongAnswers
from regatta.server.team.submitting.handing_in import HandingIn, Look, nothing_more
from regatta.server.team.submitting.loose_ends import LooseEnds
from regatta.server.team.submitting.turns import Turns
from regatta.server.team.team_settings import TeamSettings


class Desk:
    def __init__(
        self,
        database: Database,
        engine: Engine,
        engine_name: str,
        settings: TeamSettings,
        grounds: Grounds,
        limits: RequestLimits,
        now: Callable[[], int],
    ) -> None:
        self.database, self.engine, self.engine_name = database, engine, engine_name
        self.settings = settings
        self.limits = limits
        self._grounds, self._now = grounds, now
        self.turns = Turns()
        self.streams = OpenStreams()
        self.long_answers = LongAnswers(self.require_still)
        self.deleting = Deleting(database, engine, engine_name, self.clear, now)
        self.loose_ends = LooseEnds(database, engine, self.turns, self.clear, self.deleting)
        self._handing_in = HandingIn(
            database,
            engine,
            engine_name,
            settings,
            grounds,
            self.turns,
            self.loose_ends,
            self.deleting,
            now,
        )

    # Handing in

    async def submit(
        self,
        caller: Caller,
        submission: Submission,
        shell: Shell | None = None,
        *,
        takes_over: bool = False,
        look: Look = nothing_more,
    ) -> tuple[JobRow, Accepted]:
        """`takes_over`: a job of the same name that has ended makes room for this one, as on any
        engine; with OpenPAI a name is taken until its record is deleted. `look`: what the door that
        it came through has to say of what was read, before anything is written."""
        self.limits.submit(caller.name)
        return await self._handing_in.submit(
            caller, submission, shell, takes_over=takes_over, look=look
        )

    async def finish(self, seconds: float) -> None:
        """What is underway, when the server leaves. What takes longer is settled by the next."""
        await self._handing_in.finish(seconds)

    async def preview(
        self, caller: Caller, submission: Submission, shell: Shell | None, *, stored: bool
    ) -> Preview:
        return await self._handing_in.preview(caller, submission, shell, stored=stored)

    # Finding

    async def find(self, caller: Caller, user: str, name: str) -> JobRow:
        """What one may not see is not there. Raises OpenPaiError (404)."""
        shown = f"{user}~{name}"
        row = await self._row_of(user, name)
        if row is None:
            raise no_job(shown)
        peers = await self.peers(caller)
        require_seen(caller, row.username, shown, self.settings.visibility, peers)
        return row

    async def _row_of(self, user: str, name: str) -> JobRow | None:
        """`user` in any case; as it stands on record it takes one look."""
        with suppress(NoRecord):
            return await self.database.read(job_of, user, name)
        for other in await self.database.read(spellings_of, [user]):
            with suppress(NoRecord):
                return await self.database.read(job_of, other, name)
        return None

    async def require_changeable(
        self, caller: Caller, row: JobRow, shown: str, verb: str = EXECUTE
    ) -> None:
        """Of a job that was found. Raises OpenPaiError: 403 where it is another's."""
        peers = await self.peers(caller)
        require_changeable(caller, row.username, shown, self.settings.visibility, peers, verb)

    async def page(
        self, caller: Caller, wanted: JobFilter, order: Order, *, offset: int = 0, limit: int = 5000
    ) -> JobPage:
        """Owners are found in any case that `wanted` has them in."""
        self.limits.list_jobs(caller.name)
        if wanted.usernames is not None:
            spelt = await self.database.read(spellings_of, wanted.usernames)
            wanted = replace(wanted, usernames=spelt)
        seen = await self.owners_seen(caller)
        visible = None if seen is None else tuple(sorted(seen))
        wanted = replace(wanted, visible_to=visible)
        return await self.database.read(list_jobs, wanted, order, offset=offset, limit=limit)

    async def owner_of(self, job: Job) -> str | None:
        """None: nothing is on record of it. An engine tells of a job before its submit is
        finished: then it is whose submit is on its way to that place, or has come there since the
        first look."""
        owners = await self.database.read(owners_of, self.engine_name, [job.uid])
        if job.uid in owners:
            return owners[job.uid]
        row = await self.database.read(job_at, self.engine_name, job.namespace, job.name)
        return row.username if row is not None and row.engine_uid in (None, job.uid) else None

    async def owners_seen(self, caller: Caller) -> frozenset[str] | None:
        """None: everybody's, nobody's as well."""
        return owners_seen(caller, self.settings.visibility, await self.peers(caller))

    async def require_still(self, caller: Caller) -> None:
        """That the caller may still come in, with the rights that were found then. Raises
        OpenPaiError (401)."""
        await self.database.read(require_as_before, caller, self._now())

    async def peers(self, caller: Caller) -> frozenset[str]:
        if caller.admin or self.settings.visibility is not Visibility.GROUP:
            return frozenset()
        return await self.database.read(peers_of, caller.user_id)

    # Changing

    async def stop(self, row: JobRow) -> None:
        """STOPPING from this moment. What is over stays what it is."""
        async with self.turns.of((row.username, row.name)):
            row = await self._in_its_turn(row)
            await self.database.run(mark_stop, row.id)
            try:
                if await has_its_name(self.engine, row):
                    await self.engine.stop(row.namespace, row.engine_name)
            except (JobNotFound, NotPossible):  # it has ended; the recorder tells how
                pass
            except BaseException:
                await self.database.run(unmark_stop, row.id)
                raise

    async def note_stop(self, row: JobRow) -> None:
        """That the engine was asked to."""
        await self.database.run(mark_stop, row.id)

    async def delete(self, row: JobRow) -> None:
        """The job, what it printed, and its record."""
        async with self.turns.of((row.username, row.name)):
            row = await self._in_its_turn(row)
            await self.remove(row)

    async def remove(self, row: JobRow) -> None:
        """The same, of who has its turn."""
        try:
            await self.deleting.delete(row)
        except BaseException:
            self.loose_ends.left()
            raise

    async def remove_many(
        self, namespace: str, *, live: bool, ended_before: datetime | None
    ) -> Removal:
        try:
            return await self.deleting.delete_many(namespace, live=live, ended_before=ended_before)
        finally:
            self.loose_ends.left()

    async def _in_its_turn(self, row: JobRow) -> JobRow:
        """Whoever has the name by now: another job may have taken it, or given it back. Raises
        OpenPaiError (404)."""
        try:
            return await self.database.read(job_of, row.username, row.name)
        except NoRecord:
            raise no_job(f"{row.username}~{row.name}") from None

    async def clear(self, job_id: str) -> None:
        """What was made for this job alone."""
        await self._grounds.clear(job_id)

    async def tag(self, row: JobRow, tag: str) -> None:
        await self.database.run(add_tag, row.id, tag)

    async def untag(self, row: JobRow, tag: str) -> bool:
        """False: it had no such tag."""
        return await self.database.run(remove_tag, row.id, tag)
