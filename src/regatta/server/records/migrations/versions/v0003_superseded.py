"""A job's name can pass to its owner's next job, and the record of the first stays."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from regatta.server.records.metadata import Words

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.add_column("jobs", sa.Column("superseded_by", Words))
    op.drop_index("uq_jobs_username_name", "jobs")
    named = sa.text("deleted_at IS NULL AND superseded_by IS NULL AND username <> ''")
    op.create_index(
        "uq_jobs_username_name",
        "jobs",
        ["username", "name"],
        unique=True,
        sqlite_where=named,
        postgresql_where=named,
    )
