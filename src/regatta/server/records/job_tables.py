"""The tables of jobs, and of what hangs on a job.

What a list shows is in `jobs`, and nothing else: a scan of thirty thousand rows reads no document.
Moments are whole milliseconds, as OpenPAI's answers have them.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    SmallInteger,
    Table,
    UniqueConstraint,
    false,
    text,
    true,
)

from regatta.server.records.metadata import METADATA, Millis, Serial, Words


def _text(name: str, default: str = "") -> Column[str]:
    return Column(name, Words, nullable=False, server_default=default)


def _number(name: str) -> Column[int]:
    return Column(name, Integer, nullable=False, server_default=text("0"))


def _of_a_job(**more: Any) -> Column[str]:
    return Column("job_id", Words, ForeignKey("jobs.id", ondelete="CASCADE"), **more)


jobs = Table(
    "jobs",
    METADATA,
    #: The id of the submit; for a job that came another way, its uid.
    Column("id", Words, primary_key=True),
    #: Who runs it, and as what.
    _text("engine"),
    _text("namespace"),
    _text("engine_name"),
    #: None until the engine has accepted it.
    Column("engine_uid", Words),
    #: The owner; empty: the job did not come through this server.
    _text("username"),
    _text("name"),
    #: 1 and 2: OpenPAI's; 0: a PaddleJob.
    Column("protocol", SmallInteger, nullable=False, server_default=text("0")),
    _text("virtual_cluster"),
    _text("priority", "default"),
    #: accepting: on its way to the engine; accepted.
    Column("submit_state", Words, nullable=False),
    _text("execution_type", "START"),
    _text("phase"),
    _text("state", "WAITING"),
    _text("sub_state", "AttemptCreationPending"),
    _text("reason"),
    _text("message"),
    _number("attempt"),
    _number("retries"),
    _number("retries_user"),
    _number("retries_platform"),
    _number("retries_resource"),
    #: The last disruption that `retries_platform` has counted.
    Column("disrupted_at", Millis),
    _number("total_tasks"),
    _number("total_roles"),
    _number("total_gpus"),
    Column("submitted_at", Millis, nullable=False),
    Column("created_at", Millis),
    Column("launched_at", Millis),
    Column("completed_at", Millis),
    Column("exit_code", Integer),
    #: Who decided its end, and how.
    Column("trigger_role", Words),
    Column("trigger_index", Integer),
    _text("trigger_message"),
    #: False: it was gone when somebody looked again, and `notes` says what is known.
    Column("end_seen", Boolean, nullable=False, server_default=true()),
    _text("notes"),
    Column("last_seen_at", Millis),
    #: Since when the engine has it no more.
    Column("gone_at", Millis),
    #: Since when somebody wants it deleted, while the engine may still have it.
    Column("delete_asked_at", Millis),
    #: When a person removed the record: the name is free, and the row goes when the job has gone.
    Column("deleted_at", Millis),
    #: The job that has its name now.
    Column("superseded_by", Words),
    #: What was last written of the job, and whether that was all there will be.
    _text("fingerprint"),
    Column("settled", Boolean, nullable=False, server_default=false()),
    #: Owner, name and virtual cluster in one case, for keywords: `job_lists` says how.
    _text("search"),
    CheckConstraint("submit_state IN ('accepting', 'accepted')", name="submit_state"),
    CheckConstraint("execution_type IN ('START', 'STOP')", name="execution_type"),
)

#: A name is its owner's until the record is deleted, or the owner's next job takes it. What nobody
#: owns may share one.
_NAMED = text("deleted_at IS NULL AND superseded_by IS NULL AND username <> ''")
Index(
    "uq_jobs_username_name",
    jobs.c.username,
    jobs.c.name,
    unique=True,
    sqlite_where=_NAMED,
    postgresql_where=_NAMED,
)
Index("uq_jobs_engine_uid", jobs.c.engine_uid, unique=True)
Index(None, jobs.c.namespace, jobs.c.engine_name)
Index(None, jobs.c.submitted_at)
Index(None, jobs.c.completed_at)
Index(None, jobs.c.state, jobs.c.completed_at)

documents = Table(
    "job_documents",
    METADATA,
    _of_a_job(primary_key=True),
    #: As JSON. config: as its author sent it, secrets masked; job: the PaddleJob.
    Column("kind", Words, primary_key=True),
    Column("text", Words, nullable=False),
)

attempts = Table(
    "attempts",
    METADATA,
    _of_a_job(primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("started_at", Millis),
    Column("ended_at", Millis),
    #: Empty while it goes on.
    _text("outcome"),
    _text("reason"),
    _text("message"),
    #: The replica that failed first.
    Column("blamed_role", Words),
    Column("blamed_index", Integer),
    Column("exit_code", Integer),
)

replicas = Table(
    "replicas",
    METADATA,
    _of_a_job(primary_key=True),
    Column("uid", Words, primary_key=True),
    _number("attempt"),
    Column("role", Words, nullable=False),
    Column("replica_index", Integer, nullable=False),
    _text("name"),
    _text("phase"),
    _text("node"),
    _text("address"),
    Column("first_port", Integer),
    Column("last_port", Integer),
    #: Their ids, with commas.
    _text("gpus"),
    _number("restarts"),
    Column("exit_code", Integer),
    _text("reason"),
    #: At most 4 KiB: the last it said.
    _text("message"),
    Column("created_at", Millis),
    Column("started_at", Millis),
    Column("finished_at", Millis),
    Column("last_seen_at", Millis, nullable=False),
)

events = Table(
    "events",
    METADATA,
    Column("id", Serial, primary_key=True),
    _of_a_job(nullable=False),
    #: The engine's own number for it.
    Column("engine_id", Millis, nullable=False),
    Column("at", Millis, nullable=False),
    _text("type"),
    _text("reason"),
    _text("message"),
    Column("count", Integer, nullable=False, server_default=text("1")),
    UniqueConstraint("job_id", "engine_id"),
)

tags = Table(
    "tags",
    METADATA,
    _of_a_job(primary_key=True),
    Column("tag", Words, primary_key=True),
    Index(None, "tag"),
)

#: Where nobody looked, and why: what happened meanwhile may be missing.
gaps = Table(
    "gaps",
    METADATA,
    Column("id", Serial, primary_key=True),
    Column("from_at", Millis, nullable=False),
    Column("until_at", Millis, nullable=False),
    _text("why"),
)

#: How far the recorder has come: the last event, the last moment that it saw everything.
progress = Table(
    "progress",
    METADATA,
    Column("engine", Words, primary_key=True),
    Column("what", Words, primary_key=True),
    Column("value", Words, nullable=False),
)
