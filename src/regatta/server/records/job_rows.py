"""What is on record of a job, as readers get it: no SQL in it, and times as whole milliseconds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection, Row, exists, func, select
from sqlalchemy.sql import ColumnElement

from regatta.api.errors import NoRecord
from regatta.server.openpai_states import FINAL_STATES
from regatta.server.records.job_tables import attempts, documents, events, jobs, replicas, tags

#: Ids in one question: databases bound what a statement may carry.
AT_ONCE = 1000


class JobRow(msgspec.Struct, frozen=True, kw_only=True):
    """A job, as lists and its page show it. `job_tables.jobs` says what each column means."""

    id: str
    engine: str
    namespace: str
    engine_name: str
    engine_uid: str | None
    username: str
    name: str
    protocol: int
    virtual_cluster: str
    priority: str
    submit_state: str
    execution_type: str
    phase: str
    state: str
    sub_state: str
    reason: str
    message: str
    attempt: int
    retries: int
    retries_user: int
    retries_platform: int
    retries_resource: int
    total_tasks: int
    total_roles: int
    total_gpus: int
    submitted_at: int
    created_at: int | None
    launched_at: int | None
    completed_at: int | None
    exit_code: int | None
    trigger_role: str | None
    trigger_index: int | None
    trigger_message: str
    end_seen: bool
    notes: str
    last_seen_at: int | None
    gone_at: int | None
    tags: tuple[str, ...] = ()


class AttemptRow(msgspec.Struct, frozen=True, kw_only=True):
    number: int
    started_at: int | None
    ended_at: int | None
    outcome: str
    reason: str
    message: str
    blamed_role: str | None
    blamed_index: int | None
    exit_code: int | None


class ReplicaRow(msgspec.Struct, frozen=True, kw_only=True):
    uid: str
    attempt: int
    role: str
    replica_index: int
    name: str
    phase: str
    node: str
    address: str
    first_port: int | None
    last_port: int | None
    gpus: str
    restarts: int
    exit_code: int | None
    reason: str
    message: str
    created_at: int | None
    started_at: int | None
    finished_at: int | None
    last_seen_at: int


class EventRow(msgspec.Struct, frozen=True, kw_only=True):
    engine_id: int
    at: int
    type: str
    reason: str
    message: str
    count: int


#: What is read of each: exactly what its struct has.
SHOWN = [jobs.c[name] for name in JobRow.__struct_fields__ if name != "tags"]
_ATTEMPT = [attempts.c[name] for name in AttemptRow.__struct_fields__]
_REPLICA = [replicas.c[name] for name in ReplicaRow.__struct_fields__]
_EVENT = [events.c[name] for name in EventRow.__struct_fields__]


def job_of(connection: Connection, username: str, name: str) -> JobRow:
    """The job that has the name now. Raises NoRecord."""
    named = (jobs.c.username == username, jobs.c.name == name)
    found = _one(connection, *named, jobs.c.superseded_by.is_(None))
    if found is None:
        raise NoRecord(
            f"user {username!r} has no job named {name!r} on record; list the user's jobs to see "
            "which there are"
        )
    return found


def job_by_id(connection: Connection, job_id: str) -> JobRow:
    """Raises NoRecord."""
    found = _one(connection, jobs.c.id == job_id)
    if found is None:
        raise NoRecord(f"no job with the id {job_id!r} is on record; it may have been deleted")
    return found


def job_by_engine_uid(connection: Connection, uid: str) -> JobRow | None:
    return _one(connection, jobs.c.engine_uid == uid)


def job_at(connection: Connection, engine: str, namespace: str, name: str) -> JobRow | None:
    """The last one that the engine had in this place, by the engine's own name for it."""
    place = (jobs.c.namespace == namespace, jobs.c.engine_name == name)
    return _one(connection, jobs.c.engine == engine, *place)


def live_rows(connection: Connection, engine: str, most: int) -> list[JobRow]:
    """Some of those that are not over as far as is known, the last submitted first."""
    query = select(*SHOWN).where(
        jobs.c.engine == engine,
        jobs.c.engine_uid.is_not(None),
        jobs.c.state.not_in(FINAL_STATES),
        jobs.c.gone_at.is_(None),
        jobs.c.deleted_at.is_(None),
    )
    newest = query.order_by(jobs.c.submitted_at.desc()).limit(most)
    return with_tags(connection, connection.execute(newest))


def runs_until(connection: Connection, job_ids: Sequence[str]) -> list[str]:
    """The ids of these runs and of those before them in the same places, the oldest first, as far
    as they are on record. What is on its way there is not there yet."""
    last = jobs.alias()
    same = [jobs.c[name] == last.c[name] for name in ("engine", "namespace", "engine_name")]
    there = (jobs.c.engine_uid.is_not(None), jobs.c.deleted_at.is_(None))
    found: dict[str, int] = {}
    for start in range(0, len(job_ids), AT_ONCE):
        asked = last.c.id.in_(job_ids[start : start + AT_ONCE])
        query = select(jobs.c.id, jobs.c.submitted_at).where(
            asked, *same, *there, jobs.c.submitted_at <= last.c.submitted_at
        )
        found.update(dict(connection.execute(query).all()))
    return sorted(found, key=lambda job_id: found[job_id])


def owns_jobs(connection: Connection, username: str) -> bool:
    """Whether anything is on record of somebody who is called so, in whichever case."""
    theirs = func.lower(jobs.c.username) == username.lower()
    return bool(connection.scalar(select(exists().where(theirs, jobs.c.deleted_at.is_(None)))))


def owners_of(connection: Connection, engine: str, uids: Iterable[str]) -> dict[str, str]:
    """By the engine's uid, of those on record. Nobody's is empty."""
    asked, found = list(uids), {}
    for start in range(0, len(asked), AT_ONCE):
        some = jobs.c.engine_uid.in_(asked[start : start + AT_ONCE])
        query = select(jobs.c.engine_uid, jobs.c.username).where(jobs.c.engine == engine, some)
        found.update(dict(connection.execute(query.where(jobs.c.deleted_at.is_(None))).all()))
    return found


def ids_of_runs(connection: Connection, engine: str, uids: Iterable[str]) -> dict[str, str]:
    """By the engine's uid, of those on record."""
    asked, found = list(uids), {}
    for start in range(0, len(asked), AT_ONCE):
        some = jobs.c.engine_uid.in_(asked[start : start + AT_ONCE])
        query = select(jobs.c.engine_uid, jobs.c.id).where(jobs.c.engine == engine, some)
        found.update(dict(connection.execute(query.where(jobs.c.deleted_at.is_(None))).all()))
    return found


def runs_in(connection: Connection, engine: str, namespace: str) -> dict[str, str]:
    """The ids of all runs on record there, by the engine's uid."""
    there = (jobs.c.engine == engine, jobs.c.namespace == namespace)
    query = select(jobs.c.engine_uid, jobs.c.id).where(*there, jobs.c.engine_uid.is_not(None))
    return dict(connection.execute(query.where(jobs.c.deleted_at.is_(None))).all())


def uids_of(connection: Connection, engine: str, owners: Iterable[str]) -> list[str]:
    """The engine's, of all that these owners have there."""
    asked, found = sorted(owners), []
    for start in range(0, len(asked), AT_ONCE):
        theirs = jobs.c.username.in_(asked[start : start + AT_ONCE])
        here = (jobs.c.engine_uid.is_not(None), jobs.c.gone_at.is_(None))
        query = select(jobs.c.engine_uid).where(jobs.c.engine == engine, theirs, *here)
        found += list(connection.scalars(query.where(jobs.c.deleted_at.is_(None))))
    return found


def _one(connection: Connection, *which: ColumnElement[bool]) -> JobRow | None:
    query = select(*SHOWN).where(jobs.c.deleted_at.is_(None), *which)
    found = connection.execute(query.order_by(jobs.c.submitted_at.desc())).first()
    return with_tags(connection, [found])[0] if found is not None else None


def with_tags(connection: Connection, found: Iterable[Row[Any]]) -> list[JobRow]:
    shown = list(found)
    tagged: dict[str, list[str]] = {}
    for start in range(0, len(shown), AT_ONCE):
        ids = [row.id for row in shown[start : start + AT_ONCE]]
        query = select(tags.c.job_id, tags.c.tag).where(tags.c.job_id.in_(ids))
        for job_id, tag in connection.execute(query.order_by(tags.c.tag)):
            tagged.setdefault(job_id, []).append(tag)
    names = JobRow.__struct_fields__[: len(SHOWN)]
    return [
        JobRow(**dict(zip(names, row, strict=False)), tags=tuple(tagged.get(row.id, ())))
        for row in shown
    ]


def document_of(connection: Connection, job_id: str, kind: str) -> str | None:
    query = select(documents.c.text)
    return connection.scalar(query.where(documents.c.job_id == job_id, documents.c.kind == kind))


def documents_of(connection: Connection, job_ids: Sequence[str], kind: str) -> dict[str, str]:
    """By the job's id, of those that have one."""
    found: dict[str, str] = {}
    for start in range(0, len(job_ids), AT_ONCE):
        some = documents.c.job_id.in_(job_ids[start : start + AT_ONCE])
        query = select(documents.c.job_id, documents.c.text).where(some, documents.c.kind == kind)
        found.update(dict(connection.execute(query).all()))
    return found


def attempts_of(connection: Connection, job_id: str) -> list[AttemptRow]:
    query = select(*_ATTEMPT).where(attempts.c.job_id == job_id).order_by(attempts.c.number)
    return [AttemptRow(**row._mapping) for row in connection.execute(query)]


def replicas_of(
    connection: Connection, job_id: str, attempt: int | None = None
) -> list[ReplicaRow]:
    """In the order of roles, indexes and lives; of one attempt, or of all."""
    query = select(*_REPLICA).where(replicas.c.job_id == job_id)
    if attempt is not None:
        query = query.where(replicas.c.attempt == attempt)
    order = (replicas.c.role, replicas.c.replica_index, replicas.c.attempt, replicas.c.created_at)
    return [ReplicaRow(**row._mapping) for row in connection.execute(query.order_by(*order))]


def events_of(connection: Connection, job_id: str, kind: str | None = None) -> list[EventRow]:
    """The newest first."""
    query = select(*_EVENT).where(events.c.job_id == job_id)
    if kind is not None:
        query = query.where(events.c.type == kind)
    order = (events.c.at.desc(), events.c.engine_id.desc())
    return [EventRow(**row._mapping) for row in connection.execute(query.order_by(*order))]
