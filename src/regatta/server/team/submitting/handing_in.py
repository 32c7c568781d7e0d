"""Handing a job in: its record first, then the engine, then the record again.

Whatever dies or is away in between, a submit is on record and in the engine, or in neither: what
could not be finished is a loose end (`loose_ends`). The same submit sent twice is one: the engine
knows its key for a while, and the record for as long as there is one.
"""

from __future__ import annotations

import asyncio
import hashlib
import uuid
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from regatta.api.errors import (
    DatabaseLocked,
    DiskFull,
    JobNotFound,
    NoPorts,
    NoRecord,
    NotAllowed,
    NotPossible,
    RecordsAway,
    RegattaError,
)
from regatta.api.job import document
from regatta.api.load import Loaded
from regatta.controller.changes import replaced
from regatta.controller.environment.places import gpus
from regatta.engines.base import Accepted, Engine, Preview, Shell, Submission
from regatta.engines.shell_refusal import ON_CLUSTER, ON_SERVER, refuse_shell
from regatta.engines.submission import read_submission
from regatta.server.accounts.caller import Caller
from regatta.server.accounts.user_groups import clusters_of, list_groups
from regatta.server.accounts.users import User, get_user
from regatta.server.records.job_rows import JobRow, job_by_id, job_of
from regatta.server.records.submits import (
    ACCEPTING,
    Former,
    NewJob,
    abandon_submit,
    begin_submit,
    finish_submit,
    sent_before,
    unfinished,
)
from regatta.server.records.team_database import Database
from regatta.server.team.account_namespaces import account_namespace
from regatta.server.team.deletes import Deleting
from regatta.server.team.grounds import Grounds
from regatta.server.team.isolating.isolation import PREVIEW
from regatta.server.team.submitting.loose_ends import LooseEnds
from regatta.server.team.submitting.queues import check_queues, cluster_of
from regatta.server.team.submitting.turns import Turns
from regatta.server.team.team_settings import TeamSettings

_T = TypeVar("_T")

#: Submissions of one account that an engine looks at; the others wait for their turn.
AT_ONCE = 4
#: Milliseconds in which every engine knows the key of a submit; after that the record does.
ENGINES_REMEMBER = 86_400_000

#: Says what a door has against a job, by raising it.
Look = Callable[[Loaded], None]


def nothing_more(_: Loaded) -> None:
    pass


class HandingIn:
    def __init__(
        self,
        database: Database,
        engine: Engine,
        engine_name: str,
        settings: TeamSettings,
        grounds: Grounds,
        turns: Turns,
        loose_ends: LooseEnds,
        deleting: Deleting,
        now: Callable[[], int],
    ) -> None:
        self._database, self._engine, self._engine_name = database, engine, engine_name
        self._on_cluster = engine_name != "local"
        self._settings, self._grounds, self._now = settings, grounds, now
        self._turns, self._loose_ends, self._deleting = turns, loose_ends, deleting
        self._underway: set[asyncio.Future[Any]] = set()
        #: What looks at a submission takes a process and one of the engine's threads, for a minute
        #: perhaps: nobody has them all.
        self._of_one_account = Turns(AT_ONCE)

    async def submit(
        self,
        caller: Caller,
        submission: Submission,
        shell: Shell | None,
        *,
        takes_over: bool,
        look: Look = nothing_more,
    ) -> tuple[JobRow, Accepted]:
        user, submission = await self._as_theirs(caller, submission, shell)
        unchecked = shell is not None and shell.no_preflight
        return await self._to_its_end(self._submit(user, submission, takes_over, unchecked, look))

    async def _submit(
        self, user: User, submission: Submission, takes_over: bool, unchecked: bool, look: Look
    ) -> tuple[JobRow, Accepted]:
        async with self._turns.of(submission.key):
            before = await self._sent_before(submission.key)
            if before is not None and before.submitted_at < self._now() - ENGINES_REMEMBER:
                return await self._as_recorded(submission.key)
            loaded = await self._read(user, submission)
            await self._check_cluster(user, loaded)
            look(loaded)
            new = self._new(user, submission, loaded)
            async with self._turns.of((new.username, new.name)):
                if before is None:
                    former = await self._who_makes_room(new, submission) if takes_over else None
                    await self._begin(new, former)
                return await self._hand_over(user, new, submission, unchecked, _own_output(loaded))

    async def _read(self, user: User, submission: Submission) -> Loaded:
        async with self._of_one_account.of(user.id):
            return await asyncio.to_thread(read_submission, submission)

    async def _begin(self, new: NewJob, former: str | None) -> None:
        try:
            await self._database.run(begin_submit, new, former)
        except RecordsAway:  # it may have been written
            self._loose_ends.left()
            raise

    async def _hand_over(
        self, user: User, new: NewJob, submission: Submission, unchecked: bool, own_output: str
    ) -> tuple[JobRow, Accepted]:
        sweeps = self._deleting.sweeps(new.namespace)
        try:
            async with self._of_one_account.of(user.id):
                ground = await self._grounds.prepare(user, new.namespace, new.id, own_output)
                accepted = await self._engine.submit(submission, _with_wish(ground, unchecked))
            await self._database.run(finish_submit, new.id, accepted.job)
        except RegattaError as why:
            await self._give_up(new.id, refused=_is_refusal(why))
            raise
        except BaseException:
            self._loose_ends.left()
            raise
        row = await self._database.read(job_by_id, new.id)
        with suppress(RegattaError):  # it was handed in, whatever else
            await self._deleting.look_after(row, sweeps)
        return row, accepted

    async def _give_up(self, job_id: str, *, refused: bool) -> None:
        """Else the engine has it, or not, and says so. Whoever asked is to hear what was wrong at
        first."""
        try:
            if not refused:
                for submit in await self._database.read(unfinished, job_id):
                    await self._loose_ends.settle(submit)
            elif await self._database.run(abandon_submit, job_id):
                await self._grounds.clear(job_id)
        except RegattaError:
            self._loose_ends.left()

    async def _sent_before(self, job_id: str) -> Former | None:
        """What is on record of this very submit. Raises NotPossible."""
        before = await self._database.read(sent_before, job_id)
        if before is not None and before.submit_state == ACCEPTING:  # and nobody is about it
            for submit in await self._database.read(unfinished, job_id):
                await self._loose_ends.settle(submit)
            before = await self._database.read(sent_before, job_id)
        if before is not None and before.deleted_at is not None:
            raise _deleted_since(before.name)
        return before

    async def _as_recorded(self, job_id: str) -> tuple[JobRow, Accepted]:
        """Of a submit that is older than the memory of an engine. Raises NotPossible."""
        row = await self._database.read(job_by_id, job_id)
        try:
            job = await self._engine.get(row.namespace, row.engine_name, row.engine_uid or "")
        except JobNotFound:
            raise _deleted_since(row.name) from None
        return row, Accepted(job=job)

    async def _to_its_end(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Also where whoever asked for it hangs up: nothing is half done for it."""
        task = asyncio.ensure_future(work)
        self._underway.add(task)
        task.add_done_callback(self._done)
        return await asyncio.shield(task)

    def _done(self, task: asyncio.Future[Any]) -> None:
        self._underway.discard(task)
        if not task.cancelled():
            task.exception()  # nobody may be there to hear it

    async def finish(self, seconds: float) -> None:
        """What is underway, when the server leaves. What takes longer is settled by the next."""
        if self._underway:
            await asyncio.wait(self._underway, timeout=seconds)

    async def preview(
        self, caller: Caller, submission: Submission, shell: Shell | None, *, stored: bool
    ) -> Preview:
        user, submission = await self._as_theirs(caller, submission, shell)
        loaded = await self._read(user, submission)
        await self._check_cluster(user, loaded)
        unchecked = shell is not None and shell.no_preflight
        own_output = _own_output(loaded)
        return await self._to_its_end(
            self._preview(user, submission, unchecked, stored, own_output)
        )

    async def _preview(
        self, user: User, submission: Submission, unchecked: bool, stored: bool, own_output: str
    ) -> Preview:
        namespace, rehearsal = account_namespace(user.name), PREVIEW + uuid.uuid4().hex
        try:
            async with self._of_one_account.of(user.id):
                ground = await self._grounds.prepare(user, namespace, rehearsal, own_output)
                ground = _with_wish(ground, unchecked)
                return await self._engine.preview(submission, ground, stored=stored)
        finally:
            await self._grounds.clear(rehearsal)

    async def _as_theirs(
        self, caller: Caller, submission: Submission, shell: Shell | None
    ) -> tuple[User, Submission]:
        """In the caller's own namespace, under the caller's name, and with a key that only the same
        caller can send again."""
        instead = ON_CLUSTER if self._on_cluster else ON_SERVER
        refuse_shell(shell, "a team's server", instead)
        namespace = account_namespace(caller.name)
        if submission.namespace not in (None, namespace):
            raise NotAllowed(
                f"jobs of {caller.name} are in namespace {namespace}, not in "
                f"{submission.namespace}; leave the namespace out"
            )
        user = await self._database.read(get_user, caller.name)
        key = f"{caller.user_id} {submission.key}" if submission.key else uuid.uuid4().hex
        return user, replace(
            submission,
            namespace=namespace,
            user=user.name,
            default_fs_uri=self._settings.default_fs_uri,
            fs_uri_is_servers=True,
            unheard_fs_uri=submission.default_fs_uri,
            accounts=self._grounds.accounts,
            key=hashlib.sha256(key.encode()).hexdigest()[:32],
        )

    def _new(self, user: User, submission: Submission, loaded: Loaded) -> NewJob:
        job, config = loaded.job, loaded.config
        roles = job.spec.roles().values()
        documents = {"job": msgspec.json.encode(document(job)).decode()}
        if config is not None:
            documents["config"] = msgspec.json.encode(config.config).decode()
        return NewJob(
            id=submission.key,
            username=user.name,
            name=config.name if config else job.name,
            engine=self._engine_name,
            namespace=job.namespace,
            engine_name=job.name,
            protocol=config.protocol if config else 0,
            virtual_cluster=cluster_of(
                loaded, self._settings.virtual_clusters, on_cluster=self._on_cluster
            ),
            priority=priority_of(config.extras if config else {}),
            total_tasks=job.spec.replicas,
            total_roles=len(roles),
            total_gpus=sum(gpus(role) * role.replicas for role in roles),
            submitted_at=self._now(),
            documents=documents,
        )

    async def _check_cluster(self, user: User, loaded: Loaded) -> None:
        """Whether there are the virtual clusters that it names, and the user may use them."""
        every = self._settings.virtual_clusters
        granted = clusters_of(user, await self._database.read(list_groups), every)
        check_queues(loaded, user, granted, every, on_cluster=self._on_cluster)

    async def _who_makes_room(self, new: NewJob, submission: Submission) -> str | None:
        """The id of the record that gives its name up. Raises JobIsLive."""
        try:
            row = await self._database.read(job_of, new.username, new.name)
        except NoRecord:
            return None
        try:
            former = await self._engine.get(row.namespace, row.engine_name)
        except JobNotFound:
            return row.id
        replaced(former, even_live=submission.replace)
        return row.id


def _own_output(loaded: Loaded) -> str:
    return loaded.config.own_output if loaded.config is not None else ""


def _with_wish(ground: Shell | None, unchecked: bool) -> Shell | None:
    """Whether its programs are looked at before it is queued is all of a shell that its author may
    say."""
    return replace(ground, no_preflight=True) if ground is not None and unchecked else ground


def _is_refusal(why: RegattaError) -> bool:
    """Whether it says that there is no job. After anything else nobody knows."""
    return why.status < 500 or isinstance(why, DatabaseLocked | DiskFull | NoPorts)


def priority_of(extras: dict[str, Any]) -> str:
    """Of one of OpenPAI's configs."""
    scheduler = extras.get("hivedScheduler")
    said = scheduler.get("jobPriorityClass") if isinstance(scheduler, dict) else None
    return said if isinstance(said, str) and said else "default"


def _deleted_since(name: str) -> NotPossible:
    return NotPossible(
        f"this submission arrived before, as job {name}, which was deleted since; to run it once "
        "more, submit it anew"
    )
