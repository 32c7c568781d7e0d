"""Handing a job in, so that the records and the engine agree whatever dies in between.

The row is written first, as `accepting`; then the engine is asked, with the row's id as the key of
the submission; then the row is `accepted`, or gone. A server that died in between finds the row at
its next start and asks the engine what became of it.
"""

from __future__ import annotations

import builtins

import msgspec
from sqlalchemy import Connection, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from regatta.api.errors import NameTaken
from regatta.api.job import Job
from regatta.engines.base import Engine
from regatta.engines.inventory import RunView
from regatta.server.records.engine_abilities import RemembersKeys, drop_secrets_of_submit
from regatta.server.records.job_lists import searched
from regatta.server.records.job_tables import documents, jobs, tags
from regatta.server.records.moments import millis
from regatta.server.records.team_database import Database

ACCEPTING, ACCEPTED = "accepting", "accepted"
#: By how many milliseconds an engine's clock may be behind ours.
CLOCKS_DIFFER = 300_000


class NewJob(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a job before the engine has it."""

    #: Also the key of the submission.
    id: str
    username: str
    #: As its author wrote it.
    name: str
    #: Where it will be, and as what.
    engine: str
    namespace: str
    engine_name: str
    protocol: int = 0
    virtual_cluster: str = "default"
    priority: str = "default"
    total_tasks: int = 0
    total_roles: int = 0
    total_gpus: int = 0
    submitted_at: int
    #: By kind: `config`, with secrets masked; `job`.
    documents: dict[str, str] = {}
    tags: tuple[str, ...] = ()


class Unfinished(msgspec.Struct, frozen=True, kw_only=True):
    """A submit that nobody saw the end of."""

    id: str
    username: str
    name: str
    engine: str
    namespace: str
    engine_name: str
    submitted_at: int


def begin_submit(connection: Connection, job: NewJob, supersedes: str | None = None) -> None:
    """`supersedes`: the record that gives its name up. One that has begun already is left as it is:
    it was sent twice. Raises NameTaken."""
    row = msgspec.structs.asdict(job)
    kept, tagged = row.pop("documents"), row.pop("tags")
    row["search"] = searched(job.username, job.name, job.virtual_cluster)
    if connection.scalar(select(jobs.c.id).where(jobs.c.id == job.id)) is not None:
        return
    if supersedes is not None:
        former = update(jobs).where(jobs.c.id == supersedes, jobs.c.superseded_by.is_(None))
        connection.execute(former.values(superseded_by=job.id))
    if _is_taken(connection, job):
        raise _taken(job)
    try:
        with connection.begin_nested():
            connection.execute(insert(jobs).values(submit_state=ACCEPTING, **row))
    except IntegrityError:  # somebody was faster
        if not _is_taken(connection, job):
            raise
        raise _taken(job) from None
    if kept:
        rows = [{"job_id": job.id, "kind": kind, "text": text} for kind, text in kept.items()]
        connection.execute(insert(documents), rows)
    if tagged:
        connection.execute(insert(tags), [{"job_id": job.id, "tag": tag} for tag in set(tagged)])


def finish_submit(connection: Connection, job_id: str, accepted: Job | RunView) -> None:
    """The engine has it, or has had it. The recorder may have seen it before."""
    made = (
        accepted.metadata.creation_timestamp if isinstance(accepted, Job) else accepted.created_at
    )
    # Under another name than was expected it would have been taken for nobody's.
    nobodys = (jobs.c.engine_uid == accepted.uid, jobs.c.username == "", jobs.c.id != job_id)
    connection.execute(delete(jobs).where(*nobodys))
    connection.execute(
        update(jobs)
        .where(jobs.c.id == job_id)
        .values(
            submit_state=ACCEPTED,
            engine_uid=accepted.uid,
            namespace=accepted.namespace,
            engine_name=accepted.name,
            created_at=millis(made),
        )
    )


def abandon_submit(connection: Connection, job_id: str) -> bool:
    """The engine does not have it: the row is gone, and the name is whose it was before, or whose
    it has become since. False: it has it."""
    here = (jobs.c.id == job_id, jobs.c.submit_state == ACCEPTING)
    row = connection.execute(select(jobs.c.superseded_by).where(*here)).one_or_none()
    if row is None or not connection.execute(delete(jobs).where(*here)).rowcount:
        return False
    former = update(jobs).where(jobs.c.superseded_by == job_id)
    connection.execute(former.values(superseded_by=row.superseded_by))
    return True


class Former(msgspec.Struct, frozen=True, kw_only=True):
    """What is on record of a submit that was sent before."""

    name: str
    submit_state: str
    submitted_at: int
    deleted_at: int | None


def sent_before(connection: Connection, job_id: str) -> Former | None:
    fields = [jobs.c[name] for name in Former.__struct_fields__]
    row = connection.execute(select(*fields).where(jobs.c.id == job_id)).one_or_none()
    return None if row is None else Former(**row._mapping)


def unfinished(connection: Connection, job_id: str | None = None) -> builtins.list[Unfinished]:
    """The oldest first; of all, or of one."""
    fields = [jobs.c[name] for name in Unfinished.__struct_fields__]
    query = select(*fields).where(jobs.c.submit_state == ACCEPTING)
    if job_id is not None:
        query = query.where(jobs.c.id == job_id)
    found = connection.execute(query.order_by(jobs.c.submitted_at, jobs.c.id))
    return [Unfinished(**row._mapping) for row in found]


async def settle_unfinished(database: Database, engine: Engine) -> builtins.list[Unfinished]:
    """At a start, before anybody is served: what became of submits that were on their way. Returns
    those that are gone. Raises what the engine raises, and then the rest is still unfinished."""
    submits = await database.read(unfinished)
    return [submit for submit in submits if await settle(database, engine, submit)]


async def settle(database: Database, engine: Engine, submit: Unfinished) -> bool:
    """What became of one that nobody is about to finish: whether it made no job, and is gone."""
    found = await _made_by(database, engine, submit)
    if found is None:
        where = (submit.namespace, submit.engine_name)
        await drop_secrets_of_submit(engine, *where, submit.id)
        return await database.run(abandon_submit, submit.id)
    await database.run(finish_submit, submit.id, found)
    return False


async def _made_by(database: Database, engine: Engine, submit: Unfinished) -> Job | RunView | None:
    if isinstance(engine, RemembersKeys):
        return await engine.arrived(submit.id, submit.namespace, submit.engine_name)
    for run in await engine.history(submit.namespace, submit.engine_name):
        if await database.read(_may_be, submit, run):
            return run
    return None


def _may_be(connection: Connection, submit: Unfinished, found: RunView) -> bool:
    """Else a job of that name is another one: on record already, or older than the submit."""
    known = select(jobs.c.id).where(jobs.c.engine_uid == found.uid)
    made = millis(found.created_at)
    older = made is not None and made < submit.submitted_at - CLOCKS_DIFFER
    return not older and connection.scalar(known) is None


def _is_taken(connection: Connection, job: NewJob) -> bool:
    query = select(jobs.c.id).where(jobs.c.username == job.username, jobs.c.name == job.name)
    living = (jobs.c.deleted_at.is_(None), jobs.c.superseded_by.is_(None))
    taken = connection.scalar(query.where(*living).limit(1))
    return job.username != "" and taken is not None


def _taken(job: NewJob) -> NameTaken:
    return NameTaken(
        f"Job name {job.name} already exists: it is on record as one of user {job.username}'s. "
        "Choose another name, or delete that job first"
    )
