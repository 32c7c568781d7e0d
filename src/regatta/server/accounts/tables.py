"""What the database keeps of people: users, groups, tokens, and what was done by whom.

Times are whole milliseconds since 1970. Names are unique without regard to case, by a column that
holds them in lower case: neither database needs to know a collation for that. Numbers of users and
tokens are never given twice (`sqlite_autoincrement`; PostgreSQL's sequences do not go back either).
"""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    String,
    Table,
    Text,
)

from regatta.server.records.metadata import METADATA

#: Of users and of groups.
LONGEST_NAME = 64

USERS = Table(
    "users",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("name", String(LONGEST_NAME), nullable=False),
    Column("name_key", String(LONGEST_NAME), nullable=False, unique=True),
    # An argon2id hash, with its parameters and its salt.
    Column("password", Text, nullable=False),
    Column("admin", Boolean, nullable=False),
    Column("email", String(256), nullable=False),
    Column("extension", JSON, nullable=False),
    Column("virtual_clusters", JSON, nullable=False),
    Column("created", BigInteger, nullable=False),
    # Since when, or null.
    Column("disabled", BigInteger),
    # As whom this user's replicas run, where that is set up.
    Column("unix_uid", BigInteger, unique=True),
    sqlite_autoincrement=True,
)

#: `default` and `admingroup` stand here for what is said of them; who is in them follows from
#: USERS, so that nobody can be an admin in one place and none in the other.
GROUPS = Table(
    "groups",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("name", String(LONGEST_NAME), nullable=False),
    Column("name_key", String(LONGEST_NAME), nullable=False, unique=True),
    Column("description", Text, nullable=False),
    Column("external_name", Text, nullable=False),
    Column("extension", JSON, nullable=False),
    Column("created", BigInteger, nullable=False),
    sqlite_autoincrement=True,
)

MEMBERSHIPS = Table(
    "memberships",
    METADATA,
    Column("user_id", ForeignKey("users.id", ondelete="CASCADE"), primary_key=True),
    Column("group_id", ForeignKey("groups.id", ondelete="CASCADE"), primary_key=True),
    Index(None, "group_id"),
)

TOKENS = Table(
    "tokens",
    METADATA,
    Column("id", Integer, primary_key=True),
    # May be shown: it names a token and opens nothing.
    Column("handle", String(16), nullable=False, unique=True),
    Column("secret_sha256", String(64), nullable=False),
    Column("user_id", ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
    Column("kind", String(16), nullable=False),
    Column("created", BigInteger, nullable=False),
    # Null: never, until it is revoked.
    Column("expires", BigInteger),
    Column("last_used", BigInteger),
    Column("revoked", BigInteger),
    CheckConstraint("kind IN ('sign-in', 'application', 'browser')", name="kind"),
    Index(None, "user_id"),
    sqlite_autoincrement=True,
)

#: Names and not numbers: an entry outlives the user and the job that it tells of.
AUDIT = Table(
    "audit",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("at", BigInteger, nullable=False),
    Column("who", String(LONGEST_NAME), nullable=False),
    Column("what", String(512), nullable=False),
    Column("job", String(512), nullable=False),
    Column("address", String(64), nullable=False),
    Column("result", String(512), nullable=False),
    Column("status", Integer, nullable=False),
    Index(None, "at"),
    Index(None, "who", "id"),
    Index(None, "job", "id"),
    sqlite_autoincrement=True,
)
