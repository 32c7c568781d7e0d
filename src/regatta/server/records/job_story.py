"""All that is on record of one job, as of one moment."""

from __future__ import annotations

import msgspec
from sqlalchemy import Connection, select

from regatta.api.job import Job, decode_job
from regatta.server.openpai_states import FINAL_STATES
from regatta.server.records.job_rows import (
    AttemptRow,
    EventRow,
    JobRow,
    ReplicaRow,
    attempts_of,
    document_of,
    events_of,
    job_by_id,
    replicas_of,
)
from regatta.server.records.job_tables import jobs


class JobStory(msgspec.Struct, frozen=True, kw_only=True):
    row: JobRow
    #: As it was submitted; None where it did not come through this server.
    job: Job | None
    attempts: tuple[AttemptRow, ...]
    #: Of all attempts.
    replicas: tuple[ReplicaRow, ...]


class LiveJob(msgspec.Struct, frozen=True):
    """A job that has not ended: where its engine has it, and what it counts for."""

    namespace: str
    engine_name: str
    virtual_cluster: str
    state: str


def story_of(connection: Connection, job_id: str) -> JobStory:
    """Raises NoRecord."""
    row = job_by_id(connection, job_id)
    written = document_of(connection, job_id, "job")
    return JobStory(
        row=row,
        job=None if written is None else decode_job(written),
        attempts=tuple(attempts_of(connection, job_id)),
        replicas=tuple(replicas_of(connection, job_id)),
    )


def told_of(
    connection: Connection, job_id: str, kind: str | None = None
) -> tuple[JobStory, list[EventRow]]:
    """The job, and its events with the newest first. Raises NoRecord."""
    return story_of(connection, job_id), events_of(connection, job_id, kind)


def live_jobs(connection: Connection, engine: str) -> list[LiveJob]:
    fields = [jobs.c[name] for name in LiveJob.__struct_fields__]
    query = select(*fields).where(
        jobs.c.engine == engine,
        jobs.c.deleted_at.is_(None),
        jobs.c.superseded_by.is_(None),
        jobs.c.gone_at.is_(None),
        jobs.c.state.not_in(FINAL_STATES),
    )
    return [LiveJob(*row) for row in connection.execute(query)]
