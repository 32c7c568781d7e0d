"""The desk: where people's wishes about jobs are met, between the records and the engine.

A job is handed in by writing its record first (`records/submits`), and everything else is asked of
the record: whose it is, and what became of it. An engine knows a job by namespace and name; people
know it by owner and name, as its owner wrote it.
"""

from __future__ import annotations

import asyncio
import hashlib
import uuid
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

import msgspec
import yaml
from msgspec.structs import replace

from regatta.api.errors import JobNotFound, NoRecord, NotAllowed, NotPossible
from regatta.api.job import Job, document
from regatta.api.load import Loaded
from regatta.controller.changes import replaced
from regatta.engines.base import Accepted, Engine, Preview, Shell, Submission
from regatta.engines.shell_refusal import refuse_shell
from regatta.engines.submission import read_submission
from regatta.server.accounts.caller import Caller
from regatta.server.accounts.rate_limits import RequestLimits
from regatta.server.accounts.user_groups import clusters_of, list_groups, peers_of
from regatta.server.accounts.users import User, get_user
from regatta.server.accounts.visibility import (
    Visibility,
    owners_seen,
    require_changeable,
    require_seen,
)
from regatta.server.openpai_errors import forbidden, no_job, no_virtual_cluster
from regatta.server.records.job_lists import JobFilter, JobPage, Order, list_jobs
from regatta.server.records.job_rows import JobRow, job_at, job_by_id, job_of, owners_of
from regatta.server.records.job_writes import (
    add_tag,
    delete_record,
    mark_stop,
    remove_tag,
    unmark_stop,
)
from regatta.server.records.submits import NewJob, abandon_submit, begin_submit, finish_submit
from regatta.server.records.team_database import Database
from regatta.server.team.account_namespaces import account_namespace
from regatta.server.team.grounds import Grounds
from regatta.server.team.team_settings import TeamSettings

_T = TypeVar("_T")


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

    # Handing in

    async def submit(
        self,
        caller: Caller,
        submission: Submission,
        shell: Shell | None = None,
        *,
        takes_over: bool = False,
    ) -> tuple[JobRow, Accepted]:
        """`takes_over`: a job of the same name that has ended makes room for this one, as on any
        engine; with OpenPAI a name is taken until its record is deleted."""
        self.limits.submit(caller.name)
        # Whoever hangs up in the middle leaves it to be finished: nothing is half done for it.
        return await _to_its_end(self._submit(caller, submission, shell, takes_over))

    async def _submit(
        self, caller: Caller, submission: Submission, shell: Shell | None, takes_over: bool
    ) -> tuple[JobRow, Accepted]:
        user, submission = await self._as_theirs(caller, submission, shell)
        loaded = await asyncio.to_thread(read_submission, submission)
        await self._check_cluster(user, loaded)
        new = self._new(user, submission, loaded)
        former = await self._who_makes_room(new, submission) if takes_over else None
        await self.database.run(begin_submit, new, former)
        try:
            ground = await self._grounds.prepare(user, new.namespace, new.id)
            accepted = await self.engine.submit(submission, ground)
        except BaseException:
            if await self.database.run(abandon_submit, new.id):
                await self.clear(new.id)
            raise
        await self.database.run(finish_submit, new.id, accepted.job)
        return await self.database.read(job_by_id, new.id), accepted

    async def preview(
        self, caller: Caller, submission: Submission, shell: Shell | None, *, stored: bool
    ) -> Preview:
        user, submission = await self._as_theirs(caller, submission, shell)
        loaded = await asyncio.to_thread(read_submission, submission)
        await self._check_cluster(user, loaded)
        namespace, rehearsal = account_namespace(user.name), f"preview-{uuid.uuid4().hex}"
        try:
            ground = await self._grounds.prepare(user, namespace, rehearsal)
            return await self.engine.preview(submission, ground, stored=stored)
        finally:
            await self.clear(rehearsal)

    async def _as_theirs(
        self, caller: Caller, submission: Submission, shell: Shell | None
    ) -> tuple[User, Submission]:
        """In the caller's own namespace, under the caller's name, and with a key that only the same
        caller can send again."""
        refuse_shell(shell, "a team's server")
        namespace = account_namespace(caller.name)
        if submission.namespace not in (None, namespace):
            raise NotAllowed(
                f"jobs of {caller.name} are in namespace {namespace}, not in "
                f"{submission.namespace}; leave the namespace out"
            )
        user = await self.database.read(get_user, caller.name)
        key = f"{caller.user_id} {submission.key}" if submission.key else uuid.uuid4().hex
        return user, replace(
            submission,
            namespace=namespace,
            user=user.name,
            default_fs_uri=self.settings.default_fs_uri,
            key=hashlib.sha256(key.encode()).hexdigest()[:32],
        )

    def _new(self, user: User, submission: Submission, loaded: Loaded) -> NewJob:
        job, config = loaded.job, loaded.config
        roles = job.spec.roles().values()
        documents = {"job": msgspec.json.encode(document(job)).decode()}
        if config is not None:
            documents["config"] = yaml.safe_dump(config.config, sort_keys=False, allow_unicode=True)
        return NewJob(
            id=submission.key,
            username=user.name,
            name=config.name if config else job.name,
            engine=self.engine_name,
            namespace=job.namespace,
            engine_name=job.name,
            protocol=config.protocol if config else 0,
            virtual_cluster=config.virtual_cluster if config else self._queue(job),
            priority=priority_of(config.extras if config else {}),
            total_tasks=job.spec.replicas,
            total_roles=len(roles),
            submitted_at=self._now(),
            documents=documents,
        )

    def _queue(self, job: Job) -> str:
        policy = job.spec.scheduling_policy
        return (policy.queue if policy else "") or self.settings.virtual_clusters[0]

    async def _check_cluster(self, user: User, loaded: Loaded) -> None:
        """Whether there is such a virtual cluster, and the user may use it."""
        if loaded.config is None:
            return
        wanted, every = loaded.config.virtual_cluster, self.settings.virtual_clusters
        if wanted not in every:
            raise no_virtual_cluster(wanted)
        groups = await self.database.read(list_groups)
        if wanted not in clusters_of(user, groups, every):
            raise forbidden(f"User {user.name} is not allowed to do operation in {wanted}")

    async def _who_makes_room(self, new: NewJob, submission: Submission) -> str | None:
        """The id of the record that gives its name up. Raises JobIsLive."""
        try:
            row = await self.database.read(job_of, new.username, new.name)
        except NoRecord:
            return None
        if row.id == new.id:  # sent twice
            return None
        try:
            former = await self.engine.get(row.namespace, row.engine_name)
        except JobNotFound:
            return row.id
        replaced(former, even_live=submission.replace)
        return row.id

    # Finding

    async def find(self, caller: Caller, user: str, name: str) -> JobRow:
        """What one may not see is not there. Raises OpenPaiError (404)."""
        shown = f"{user}~{name}"
        try:
            row = await self.database.read(job_of, user, name)
        except NoRecord:
            raise no_job(shown) from None
        peers = await self.peers(caller)
        require_seen(caller, row.username, shown, self.settings.visibility, peers)
        return row

    async def find_to_change(self, caller: Caller, user: str, name: str) -> JobRow:
        """Raises OpenPaiError: 404, or 403 where one sees it and it is another's."""
        row = await self.find(caller, user, name)
        shown = f"{user}~{name}"
        peers = await self.peers(caller)
        require_changeable(caller, row.username, shown, self.settings.visibility, peers)
        return row

    async def page(
        self, caller: Caller, wanted: JobFilter, order: Order, *, offset: int = 0, limit: int = 5000
    ) -> JobPage:
        self.limits.list_jobs(caller.name)
        seen = await self.owners_seen(caller)
        visible = None if seen is None else tuple(sorted(seen))
        wanted = replace(wanted, visible_to=visible)
        return await self.database.read(list_jobs, wanted, order, offset=offset, limit=limit)

    async def owner_of(self, job: Job) -> str | None:
        """None: nothing is on record of it. An engine tells of a job before its submit is
        finished: then it is whose submit is on its way to that place."""
        owners = await self.database.read(owners_of, self.engine_name, [job.uid])
        if job.uid in owners:
            return owners[job.uid]
        row = await self.database.read(job_at, self.engine_name, job.namespace, job.name)
        return row.username if row is not None and row.engine_uid is None else None

    async def owners_seen(self, caller: Caller) -> frozenset[str] | None:
        """None: everybody's, nobody's as well."""
        return owners_seen(caller, self.settings.visibility, await self.peers(caller))

    async def peers(self, caller: Caller) -> frozenset[str]:
        if caller.admin or self.settings.visibility is not Visibility.GROUP:
            return frozenset()
        return await self.database.read(peers_of, caller.user_id)

    # Changing

    async def stop(self, row: JobRow) -> None:
        """STOPPING from this moment. What is over stays what it is."""
        await self.database.run(mark_stop, row.id)
        try:
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
        with suppress(JobNotFound):
            await self.engine.delete(row.namespace, row.engine_name)
        await self.forget(row)

    async def forget(self, row: JobRow) -> None:
        """The record of a job that the engine has deleted."""
        await self.database.run(delete_record, row.id, self._now())
        await self.clear(row.id)

    async def clear(self, job_id: str) -> None:
        """What was made for this job alone."""
        await self._grounds.clear(job_id)

    async def tag(self, row: JobRow, tag: str) -> None:
        await self.database.run(add_tag, row.id, tag)

    async def untag(self, row: JobRow, tag: str) -> bool:
        """False: it had no such tag."""
        return await self.database.run(remove_tag, row.id, tag)


def priority_of(extras: dict[str, Any]) -> str:
    """Of one of OpenPAI's configs."""
    scheduler = extras.get("hivedScheduler")
    said = scheduler.get("jobPriorityClass") if isinstance(scheduler, dict) else None
    return said if isinstance(said, str) and said else "default"


async def _to_its_end(work: Coroutine[Any, Any, _T]) -> _T:
    """Also where whoever asked for it leaves."""
    return await asyncio.shield(asyncio.ensure_future(work))
