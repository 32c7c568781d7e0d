"""That somebody wants a job deleted is on record before the engine deletes it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.add_column("jobs", sa.Column("delete_asked_at", sa.BigInteger))
