"""Lists of one state, the last to end first: what people look at most, found without all others."""

from __future__ import annotations

from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.create_index("ix_jobs_state_completed_at", "jobs", ["state", "completed_at"])
