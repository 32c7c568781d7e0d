"""Which format a team's database has, and which one this release expects: known without Alembic,
which takes longer to load than a command that only lists accounts should take."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, inspect, text

#: The steps from each format to the next, by number: `v0001_jobs.py` leads to 0001.
STEPS = Path(__file__).parent / "migrations"
NEWEST = max(step.name[1:5] for step in (STEPS / "versions").glob("v[0-9]*.py"))

#: Alembic's own.
_TABLE = "alembic_version"


def format_of(connection: Connection) -> str | None:
    """None: it is empty."""
    if not inspect(connection).has_table(_TABLE):
        return None
    found: str | None = connection.scalar(text(f"SELECT version_num FROM {_TABLE}"))
    return found
