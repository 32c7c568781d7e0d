"""Jobs, and what hangs on a job. As it was then: the tables of today are in `job_tables`."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.schema import SchemaItem

from regatta.server.records.metadata import Millis, Serial, Words

revision = "0001"
down_revision = None


def upgrade() -> None:
    _create_jobs()
    _create_what_hangs_on_a_job()
    _create_the_recorders_own()


def _create_jobs() -> None:
    op.create_table(
        "jobs",
        sa.Column("id", Words, nullable=False),
        *map(_words, ("engine", "namespace", "engine_name")),
        sa.Column("engine_uid", Words),
        *map(_words, ("username", "name")),
        sa.Column("protocol", sa.SmallInteger, nullable=False, server_default=sa.text("0")),
        _words("virtual_cluster"),
        _words("priority", "default"),
        sa.Column("submit_state", Words, nullable=False),
        _words("execution_type", "START"),
        _words("phase"),
        _words("state", "WAITING"),
        _words("sub_state", "AttemptCreationPending"),
        *map(_words, ("reason", "message")),
        *map(_number, ("attempt", "retries", "retries_user")),
        *map(_number, ("retries_platform", "retries_resource")),
        sa.Column("disrupted_at", Millis),
        *map(_number, ("total_tasks", "total_roles", "total_gpus")),
        sa.Column("submitted_at", Millis, nullable=False),
        *(sa.Column(name, Millis) for name in ("created_at", "launched_at", "completed_at")),
        sa.Column("exit_code", sa.Integer),
        sa.Column("trigger_role", Words),
        sa.Column("trigger_index", sa.Integer),
        _words("trigger_message"),
        sa.Column("end_seen", sa.Boolean, nullable=False, server_default=sa.true()),
        _words("notes"),
        *(sa.Column(name, Millis) for name in ("last_seen_at", "gone_at", "deleted_at")),
        _words("fingerprint"),
        sa.Column("settled", sa.Boolean, nullable=False, server_default=sa.false()),
        _words("search"),
        sa.CheckConstraint("submit_state IN ('accepting', 'accepted')", name="submit_state"),
        sa.CheckConstraint("execution_type IN ('START', 'STOP')", name="execution_type"),
        sa.PrimaryKeyConstraint("id", name="pk_jobs"),
    )
    named = sa.text("deleted_at IS NULL AND username <> ''")
    op.create_index(
        "uq_jobs_username_name",
        "jobs",
        ["username", "name"],
        unique=True,
        sqlite_where=named,
        postgresql_where=named,
    )
    op.create_index("uq_jobs_engine_uid", "jobs", ["engine_uid"], unique=True)
    op.create_index("ix_jobs_namespace_engine_name", "jobs", ["namespace", "engine_name"])
    op.create_index("ix_jobs_submitted_at", "jobs", ["submitted_at"])
    op.create_index("ix_jobs_completed_at", "jobs", ["completed_at"])


def _create_what_hangs_on_a_job() -> None:
    op.create_table(
        "job_documents",
        *_of_a_job("job_documents", sa.Column("kind", Words, nullable=False)),
        sa.Column("text", Words, nullable=False),
    )
    op.create_table(
        "attempts",
        *_of_a_job("attempts", sa.Column("number", sa.Integer, nullable=False)),
        sa.Column("started_at", Millis),
        sa.Column("ended_at", Millis),
        *map(_words, ("outcome", "reason", "message")),
        sa.Column("blamed_role", Words),
        sa.Column("blamed_index", sa.Integer),
        sa.Column("exit_code", sa.Integer),
    )
    op.create_table(
        "replicas",
        *_of_a_job("replicas", sa.Column("uid", Words, nullable=False)),
        _number("attempt"),
        sa.Column("role", Words, nullable=False),
        sa.Column("replica_index", sa.Integer, nullable=False),
        *map(_words, ("name", "phase", "node", "address")),
        sa.Column("first_port", sa.Integer),
        sa.Column("last_port", sa.Integer),
        _words("gpus"),
        _number("restarts"),
        sa.Column("exit_code", sa.Integer),
        *map(_words, ("reason", "message")),
        *(sa.Column(name, Millis) for name in ("created_at", "started_at", "finished_at")),
        sa.Column("last_seen_at", Millis, nullable=False),
    )
    op.create_table("tags", *_of_a_job("tags", sa.Column("tag", Words, nullable=False)))
    op.create_index("ix_tags_tag", "tags", ["tag"])
    op.create_table(
        "events",
        sa.Column("id", Serial, autoincrement=True),
        sa.Column("job_id", Words, nullable=False),
        sa.Column("engine_id", Millis, nullable=False),
        sa.Column("at", Millis, nullable=False),
        *map(_words, ("type", "reason", "message")),
        sa.Column("count", sa.Integer, nullable=False, server_default=sa.text("1")),
        sa.PrimaryKeyConstraint("id", name="pk_events"),
        sa.UniqueConstraint("job_id", "engine_id", name="uq_events_job_id_engine_id"),
        _goes_with_its_job("events"),
    )


def _create_the_recorders_own() -> None:
    op.create_table(
        "gaps",
        sa.Column("id", Serial, autoincrement=True),
        sa.Column("from_at", Millis, nullable=False),
        sa.Column("until_at", Millis, nullable=False),
        _words("why"),
        sa.PrimaryKeyConstraint("id", name="pk_gaps"),
    )
    op.create_table(
        "progress",
        sa.Column("engine", Words, nullable=False),
        sa.Column("what", Words, nullable=False),
        sa.Column("value", Words, nullable=False),
        sa.PrimaryKeyConstraint("engine", "what", name="pk_progress"),
    )


def _words(name: str, default: str = "") -> sa.Column[str]:
    return sa.Column(name, Words, nullable=False, server_default=default)


def _number(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.Integer, nullable=False, server_default=sa.text("0"))


def _of_a_job(table: str, key: sa.Column[Any]) -> tuple[SchemaItem, ...]:
    """What makes a row one of a job: the job and something that tells its rows apart."""
    return (
        sa.Column("job_id", Words, nullable=False),
        key,
        sa.PrimaryKeyConstraint("job_id", key.name, name=f"pk_{table}"),
        _goes_with_its_job(table),
    )


def _goes_with_its_job(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["job_id"], ["jobs.id"], ondelete="CASCADE", name=f"fk_{table}_job_id_jobs"
    )
