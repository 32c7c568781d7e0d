"""An engine as one caller sees it: the same contract, with only the jobs that the caller may see,
and changes of those alone that the caller may change.

Whose a job is, the records say; a namespace says only where somebody's jobs are looked for. What
one may not see is answered as the engine answers for what is not there.
"""

from __future__ import annotations

import builtins
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing
from datetime import datetime
from typing import TypeVar

from msgspec.structs import replace

from regatta.api.errors import JobNotFound, NotAllowed
from regatta.api.job import Job
from regatta.controller.changes import no_such_job, no_such_run
from regatta.engines.base import (
    Accepted,
    Gone,
    JobUpdate,
    LogQuery,
    LogUpdate,
    Lost,
    Preview,
    Shell,
    Submission,
    WatchUpdate,
)
from regatta.engines.inventory import (
    Capacity,
    EventView,
    PodView,
    Removal,
    RunView,
    Storage,
    Traits,
)
from regatta.server.accounts.caller import Caller
from regatta.server.records.job_rows import JobRow, job_at, job_by_engine_uid, owners_of, uids_of
from regatta.server.streams.open_streams import while_allowed
from regatta.server.team.account_namespaces import account_namespace
from regatta.server.team.desk import Desk

_T = TypeVar("_T")


class MemberEngine:
    def __init__(
        self, desk: Desk, caller: Caller, note_job: Callable[[str], None] = lambda _: None
    ) -> None:
        """`note_job`: told which job a change is about, as people know it (`ann~first`)."""
        self._desk, self._caller, self._note_job = desk, caller, note_job
        self._engine = desk.engine
        self.namespace = account_namespace(caller.name)

    async def traits(self) -> Traits:
        return replace(await self._engine.traits(), namespace=self.namespace, takes_shell=False)

    async def version(self) -> str:
        return await self._engine.version()

    async def close(self) -> None:
        """It is everybody's."""

    # Jobs

    async def submit(self, submission: Submission, shell: Shell | None = None) -> Accepted:
        row, accepted = await self._desk.submit(self._caller, submission, shell, takes_over=True)
        self._note_job(_shown(row))
        return accepted

    async def preview(
        self, submission: Submission, shell: Shell | None = None, *, stored: bool = False
    ) -> Preview:
        preview = await self._desk.preview(self._caller, submission, shell, stored=stored)
        self._note_job(f"{self._caller.name}~{preview.job.name}")
        return preview

    async def get(self, namespace: str, name: str, uid: str = "") -> Job:
        await self._require_seen(namespace, name, uid)
        return await self._engine.get(namespace, name, uid)

    async def list(
        self, namespace: str | None = None, *, finished: int | None = None
    ) -> builtins.list[Job]:
        self._desk.limits.list_jobs(self._caller.name)
        seen = await self._desk.owners_seen(self._caller)
        jobs = await self._engine.list(self._where(namespace, seen), finished=finished)
        owners = await self._owners((job.uid for job in jobs), seen)
        return [job for job in jobs if _is_seen(owners.get(job.uid), seen)]

    async def history(
        self,
        namespace: str | None = None,
        name: str | None = None,
        *,
        uid: str = "",
        limit: int | None = None,
    ) -> builtins.list[RunView]:
        seen = await self._desk.owners_seen(self._caller)
        where = self._where(namespace, seen)
        # A limit counts what is seen, so that it is applied after the others are left out.
        try:
            runs = await self._engine.history(where, name, uid=uid)
        except JobNotFound:
            if seen is None:
                raise
            runs = []  # the engine's words may name runs that the caller does not see
        owners = await self._owners((run.uid for run in runs), seen)
        shown = [run for run in runs if _is_seen(owners.get(run.uid), seen)]
        if uid and not shown:
            raise no_such_run(uid, namespace)
        return shown if limit is None else shown[:limit]

    async def stop(self, namespace: str, name: str) -> Job:
        await self._require_changeable(namespace, name)
        job = await self._engine.stop(namespace, name)
        # Another may have taken the name meanwhile, and then it was that one.
        row = await self._desk.database.read(job_by_engine_uid, job.uid)
        if row is not None:
            await self._desk.note_stop(row)
        return job

    async def delete(self, namespace: str, name: str) -> None:
        row = await self._require_changeable(namespace, name)
        if row is None:
            await self._engine.delete(namespace, name)
            return
        async with self._desk.turns.of((row.username, row.name)):
            # Another may have taken the name meanwhile, and then it is that one.
            row = await self._require_changeable(namespace, name)
            if row is None:
                raise no_such_job(namespace, name)
            await self._desk.remove(row)

    async def delete_many(
        self, namespace: str, *, live: bool = False, ended_before: datetime | None = None
    ) -> Removal:
        if namespace != self.namespace and not self._caller.admin:
            raise NotAllowed(
                f"you may delete all jobs of your own namespace, {self.namespace}, and not of "
                f"{namespace}; leave the namespace out"
            )
        return await self._desk.remove_many(namespace, live=live, ended_before=ended_before)

    async def scale(self, namespace: str, name: str, role: str, replicas: int) -> Job:
        await self._require_changeable(namespace, name)
        return await self._engine.scale(namespace, name, role, replicas)

    async def suspend(self, namespace: str, name: str) -> Job:
        await self._require_changeable(namespace, name)
        return await self._engine.suspend(namespace, name)

    async def resume(self, namespace: str, name: str) -> Job:
        await self._require_changeable(namespace, name)
        return await self._engine.resume(namespace, name)

    # What happened to them

    async def pods(self, namespace: str, name: str, uid: str = "") -> builtins.list[PodView]:
        await self._require_seen(namespace, name, uid)
        return await self._engine.pods(namespace, name, uid)

    async def events(
        self, namespace: str | None, name: str | None, after: int = 0, uid: str = ""
    ) -> builtins.list[EventView]:
        if namespace is not None and name is not None:
            await self._require_seen(namespace, name, uid)
            return await self._engine.events(namespace, name, after, uid)
        seen = await self._desk.owners_seen(self._caller)
        found = await self._engine.events(self._where(namespace, seen), name, after, uid)
        told = _Told(self._desk, seen)
        return [event for event in found if await told.may_hear(event.namespace, event.job)]

    async def capacity(self, namespace: str | None = None) -> Capacity:
        """Of the machines everybody sees how full they are; of replicas, whose they see."""
        seen = await self._desk.owners_seen(self._caller)
        found = await self._engine.capacity(self._where(namespace, seen))
        told = _Told(self._desk, seen)
        replicas = [one for one in found.replicas if await told.may_hear(one.namespace, one.job)]
        return replace(found, replicas=tuple(replicas))

    async def storage(self) -> Storage:
        """The server's own; nothing of it is a member's to know."""
        return await self._engine.storage() if self._caller.admin else Storage()

    # Streams

    def logs(self, namespace: str, name: str, query: LogQuery) -> AsyncGenerator[LogUpdate, None]:
        query = replace(query, asker=self._caller.name)
        return self._held(self._logs(namespace, name, query))

    def follow(
        self, namespace: str, name: str, query: LogQuery, *, status: bool = True
    ) -> AsyncGenerator[JobUpdate, None]:
        query = replace(query, asker=self._caller.name)
        return self._held(self._follow(namespace, name, query, status))

    def watch(
        self, namespace: str | None = None, name: str | None = None
    ) -> AsyncGenerator[WatchUpdate, None]:
        watch = self._watch(namespace, name)
        return self._held(self._desk.long_answers.begun(self._caller, watch))

    def follow_events(
        self, namespace: str | None = None, name: str | None = None, after: int = 0
    ) -> AsyncGenerator[EventView | Lost, None]:
        return self._held(self._follow_events(namespace, name, after))

    async def _held(self, source: AsyncGenerator[_T, None]) -> AsyncGenerator[_T, None]:
        """Within bounds, and while the caller may hear it. One whose caller sees others' jobs now
        than before ends, and whoever opens it again is told what is so then."""
        seen = await self._desk.owners_seen(self._caller)

        async def may_go_on() -> bool:
            await self._desk.require_still(self._caller)
            return await self._desk.owners_seen(self._caller) == seen

        with self._desk.streams.one_more(self._caller.user_id):
            async with aclosing(while_allowed(source, may_go_on)) as updates:
                async for update in updates:
                    yield update

    async def _logs(
        self, namespace: str, name: str, query: LogQuery
    ) -> AsyncGenerator[LogUpdate, None]:
        await self._require_seen(namespace, name, query.uid)
        async with aclosing(self._engine.logs(namespace, name, query)) as updates:
            async for update in updates:
                yield update

    async def _follow(
        self, namespace: str, name: str, query: LogQuery, status: bool
    ) -> AsyncGenerator[JobUpdate, None]:
        await self._require_seen(namespace, name, query.uid)
        async with aclosing(self._engine.follow(namespace, name, query, status=status)) as updates:
            async for update in updates:
                yield update

    async def _watch(
        self, namespace: str | None, name: str | None
    ) -> AsyncGenerator[WatchUpdate, None]:
        seen = await self._desk.owners_seen(self._caller)
        told = _Told(self._desk, seen)
        await told.learn()
        async with aclosing(self._engine.watch(self._where(namespace, seen), name)) as updates:
            async for update in updates:
                if isinstance(update, Job):
                    if await told.may_see(update):
                        yield update
                elif isinstance(update, Gone):
                    if told.has_shown(update.namespace, update.name):
                        yield update
                else:
                    yield update

    async def _follow_events(
        self, namespace: str | None, name: str | None, after: int
    ) -> AsyncGenerator[EventView | Lost, None]:
        seen = await self._desk.owners_seen(self._caller)
        told = _Told(self._desk, seen)
        events = self._engine.follow_events(self._where(namespace, seen), name, after)
        async with aclosing(events) as updates:
            async for update in updates:
                if isinstance(update, Lost) or await told.may_hear(update.namespace, update.job):
                    yield update

    # Whose it is

    def _where(self, namespace: str | None, seen: frozenset[str] | None) -> str | None:
        """As little of the engine as will do: who sees their own jobs alone has them in one
        place."""
        if namespace is None and seen is not None and seen <= {self._caller.name}:
            return self.namespace
        return namespace

    async def _owners(self, uids: Iterable[str], seen: frozenset[str] | None) -> dict[str, str]:
        if seen is None:
            return {}
        return await self._desk.database.read(owners_of, self._desk.engine_name, list(uids))

    async def _row(self, namespace: str, name: str, uid: str) -> JobRow | None:
        database = self._desk.database
        if not uid:
            return await database.read(job_at, self._desk.engine_name, namespace, name)
        # A beginning of a uid is enough for an engine; the record is asked for with all of it.
        try:
            runs = await self._engine.history(namespace, name, uid=uid)
        except JobNotFound:
            return None
        return await database.read(job_by_engine_uid, runs[0].uid)

    async def _require_seen(self, namespace: str, name: str, uid: str = "") -> JobRow | None:
        """Raises JobNotFound. None: nobody's, and the caller sees everything."""
        seen = await self._desk.owners_seen(self._caller)
        row = await self._row(namespace, name, uid)
        if not _is_seen(row.username if row else None, seen):
            raise no_such_run(uid, namespace) if uid else no_such_job(namespace, name)
        return row

    async def _require_changeable(self, namespace: str, name: str) -> JobRow | None:
        """Raises JobNotFound, or NotAllowed."""
        row = await self._require_seen(namespace, name)
        owner = row.username if row else ""
        self._note_job(_shown(row) if row else f"{namespace}/{name}")
        if not self._caller.admin and owner != self._caller.name:
            raise NotAllowed(
                f"job {name} in namespace {namespace} is {owner or 'nobody'}'s; only its owner and "
                "admins may change it"
            )
        return row


class _Told:
    """What a stream may tell a caller who sees the jobs of `seen`; None: of everybody."""

    def __init__(self, desk: Desk, seen: frozenset[str] | None) -> None:
        self._desk, self._seen = desk, seen
        self._uids: dict[str, bool] = {}
        self._places: dict[tuple[str, str], bool] = {}
        self._shown: set[tuple[str, str]] = set()

    async def learn(self) -> None:
        """What there is: a watch begins with all of it."""
        if self._seen is not None:
            uids = await self._desk.database.read(uids_of, self._desk.engine_name, self._seen)
            self._uids = dict.fromkeys(uids, True)

    async def may_see(self, job: Job) -> bool:
        if self._seen is None:
            return True
        if not self._uids.get(job.uid):
            owner = await self._desk.owner_of(job)
            self._uids[job.uid] = _is_seen(owner, self._seen)
        if self._uids[job.uid]:
            self._shown.add((job.namespace, job.name))
        return self._uids[job.uid]

    def has_shown(self, namespace: str, name: str) -> bool:
        return self._seen is None or (namespace, name) in self._shown

    async def may_hear(self, namespace: str, name: str) -> bool:
        """Of the job that is, or was last, in this place."""
        if self._seen is None:
            return True
        place = (namespace, name)
        if not self._places.get(place):
            row = await self._desk.database.read(job_at, self._desk.engine_name, *place)
            self._places[place] = _is_seen(row.username if row else None, self._seen)
        return self._places[place]


def _shown(row: JobRow) -> str:
    return f"{row.username}~{row.name}"


def _is_seen(owner: str | None, seen: frozenset[str] | None) -> bool:
    """`owner`: None where nothing is on record of the job."""
    return seen is None or (owner is not None and owner in seen)
