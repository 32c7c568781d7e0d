"""What people do to a record: they stop the job, remove it, tag it.

What becomes of the job in its engine is the recorder's to write.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, case, delete, insert, select, update

from regatta.api.errors import NoRecord, NotPossible
from regatta.server.openpai_states import FINAL_STATES, State, SubState
from regatta.server.records.job_rows import AT_ONCE, SHOWN, JobRow, with_tags
from regatta.server.records.job_tables import attempts, documents, events, jobs, replicas, tags

#: Of one job: every list tells all of them.
MOST_TAGS = 100


def mark_stop(connection: Connection, job_id: str) -> None:
    """Shown as stopping from this moment; a job that is over stays what it is. Raises NoRecord."""
    _require(connection, job_id)
    connection.execute(
        update(jobs)
        .where(jobs.c.id == job_id, jobs.c.state.not_in(FINAL_STATES))
        .values(execution_type="STOP", state=State.STOPPING, settled=False)
    )


def unmark_stop(connection: Connection, job_id: str) -> None:
    """The engine would not: the job is what it was, as the last look at it said. Nobody looks again
    before it changes."""
    ran = jobs.c.sub_state == SubState.RUNNING
    connection.execute(
        update(jobs)
        .where(jobs.c.id == job_id, jobs.c.state == State.STOPPING)
        .values(
            execution_type="START",
            state=case((ran, State.RUNNING), else_=State.WAITING),
            fingerprint="",
        )
    )


def stops_on_record(connection: Connection) -> list[JobRow]:
    """Jobs that were to be stopped, and are not over as far as is known."""
    query = select(*SHOWN).where(
        jobs.c.execution_type == "STOP",
        jobs.c.state.not_in(FINAL_STATES),
        jobs.c.engine_uid.is_not(None),
        jobs.c.gone_at.is_(None),
        jobs.c.deleted_at.is_(None),
    )
    return with_tags(connection, connection.execute(query))


def mark_deletes(connection: Connection, job_ids: Iterable[str], now: int) -> list[str]:
    """Those among them that were not to be deleted before."""
    asked, fresh = list(job_ids), list[str]()
    for start in range(0, len(asked), AT_ONCE):
        some = (jobs.c.id.in_(asked[start : start + AT_ONCE]), jobs.c.delete_asked_at.is_(None))
        fresh += connection.scalars(select(jobs.c.id).where(*some))
        connection.execute(update(jobs).where(*some).values(delete_asked_at=now))
    return fresh


def unmark_deletes(connection: Connection, job_ids: Iterable[str]) -> None:
    """They are to be deleted no more: the engine would not, or has not."""
    asked = list(job_ids)
    for start in range(0, len(asked), AT_ONCE):
        some = jobs.c.id.in_(asked[start : start + AT_ONCE])
        connection.execute(update(jobs).where(some).values(delete_asked_at=None))


def deletes_on_record(connection: Connection) -> list[JobRow]:
    """Jobs that were to be deleted, and may be there still."""
    asked = (jobs.c.delete_asked_at.is_not(None), jobs.c.deleted_at.is_(None))
    return with_tags(connection, connection.execute(select(*SHOWN).where(*asked)))


def delete_record(connection: Connection, job_id: str, now: int) -> None:
    """All that people wrote or a job said goes at once, and the name is free. The row stays,
    unseen, while the engine may still tell of the job: it must not come back as nobody's."""
    _require(connection, job_id)
    for table in (documents, attempts, replicas, events, tags):
        connection.execute(delete(table).where(table.c.job_id == job_id))
    told = {"message": "", "reason": "", "trigger_message": "", "notes": ""}
    connection.execute(
        update(jobs).where(jobs.c.id == job_id).values(deleted_at=now, search="", **told)
    )


def add_tag(connection: Connection, job_id: str, tag: str) -> None:
    """Twice is once. Raises NoRecord, or NotPossible."""
    _require(connection, job_id)
    there = set(connection.scalars(select(tags.c.tag).where(tags.c.job_id == job_id)))
    if tag in there:
        return
    if len(there) >= MOST_TAGS:
        raise NotPossible(f"the job has {MOST_TAGS} tags, as many as one may; remove one first")
    connection.execute(insert(tags).values(job_id=job_id, tag=tag))


def remove_tag(connection: Connection, job_id: str, tag: str) -> bool:
    """False: it had no such tag. Raises NoRecord."""
    _require(connection, job_id)
    gone = delete(tags).where(tags.c.job_id == job_id, tags.c.tag == tag)
    return connection.execute(gone).rowcount > 0


def _require(connection: Connection, job_id: str) -> None:
    query = select(jobs.c.id).where(jobs.c.id == job_id, jobs.c.deleted_at.is_(None))
    if connection.scalar(query.with_for_update()) is None:
        raise NoRecord(f"no job with the id {job_id!r} is on record; it may have been deleted")
