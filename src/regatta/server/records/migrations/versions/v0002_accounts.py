"""Users, groups, tokens and audit. As it was then: the tables of today are in `accounts.tables`."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    _create_people()
    _create_tokens()
    _create_audit()


def _create_people() -> None:
    op.create_table(
        "users",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("name_key", sa.String(64), nullable=False, unique=True),
        sa.Column("password", sa.Text, nullable=False),
        sa.Column("admin", sa.Boolean, nullable=False),
        sa.Column("email", sa.String(256), nullable=False),
        sa.Column("extension", sa.JSON, nullable=False),
        sa.Column("virtual_clusters", sa.JSON, nullable=False),
        sa.Column("created", sa.BigInteger, nullable=False),
        sa.Column("disabled", sa.BigInteger),
        sa.Column("unix_uid", sa.BigInteger, unique=True),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "groups",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("name_key", sa.String(64), nullable=False, unique=True),
        sa.Column("description", sa.Text, nullable=False),
        sa.Column("external_name", sa.Text, nullable=False),
        sa.Column("extension", sa.JSON, nullable=False),
        sa.Column("created", sa.BigInteger, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "memberships",
        sa.Column("user_id", sa.Integer, primary_key=True),
        sa.Column("group_id", sa.Integer, primary_key=True),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["group_id"], ["groups.id"], ondelete="CASCADE"),
        sa.Index(None, "group_id"),
    )


def _create_tokens() -> None:
    op.create_table(
        "tokens",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("handle", sa.String(16), nullable=False, unique=True),
        sa.Column("secret_sha256", sa.String(64), nullable=False),
        sa.Column("user_id", sa.Integer, nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("created", sa.BigInteger, nullable=False),
        sa.Column("expires", sa.BigInteger),
        sa.Column("last_used", sa.BigInteger),
        sa.Column("revoked", sa.BigInteger),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], ondelete="CASCADE"),
        sa.CheckConstraint("kind IN ('sign-in', 'application', 'browser')", name="kind"),
        sa.Index(None, "user_id"),
        sqlite_autoincrement=True,
    )


def _create_audit() -> None:
    op.create_table(
        "audit",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("who", sa.String(64), nullable=False),
        sa.Column("what", sa.String(512), nullable=False),
        sa.Column("job", sa.String(512), nullable=False),
        sa.Column("address", sa.String(64), nullable=False),
        sa.Column("result", sa.String(512), nullable=False),
        sa.Column("status", sa.Integer, nullable=False),
        sa.Index(None, "at"),
        sa.Index(None, "who", "id"),
        sa.Index(None, "job", "id"),
        sqlite_autoincrement=True,
    )
