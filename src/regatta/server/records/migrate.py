"""A database becomes what this release expects, whoever else tries the same at that moment."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, text

from regatta.api.errors import NewerDatabase
from regatta.server.records.formats import STEPS

#: Of PostgreSQL's advisory locks, the one for this; the other is in `single_server`.
MIGRATING = 0x5265_6761_0001


def bring_up_to_date(engine: Engine) -> None:
    """All missing steps in one transaction, or none. Raises NewerDatabase."""
    with (
        engine.connect() as connection,
        _patience(connection),
        _rows_left_alone(connection),
        connection.begin(),
    ):
        if engine.dialect.name == "postgresql":  # on SQLite beginning takes the lock
            lock = text("SELECT pg_advisory_xact_lock(:number)")
            connection.execute(lock, {"number": MIGRATING})
        _migrate(connection)


@contextmanager
def _patience(connection: Connection) -> Iterator[None]:
    """A step may take its time, and so may another server that does the same."""
    if connection.dialect.name != "postgresql":
        yield
        return
    from regatta.server.records.waiting.patience import SILENT_MIGRATING, PatientConnection

    driver = connection.connection.driver_connection
    assert isinstance(driver, PatientConnection)
    driver.patience = SILENT_MIGRATING
    try:
        yield
    finally:
        driver.patience = None


@contextmanager
def _rows_left_alone(connection: Connection) -> Iterator[None]:
    """On SQLite a table is changed by writing it anew, which must not take the rows that point to
    it along. Said to the driver itself: within a transaction it would mean nothing."""
    driver = connection.connection.dbapi_connection
    if not isinstance(driver, sqlite3.Connection):
        yield
        return
    driver.execute("PRAGMA foreign_keys = OFF")
    try:
        yield
    finally:
        driver.execute("PRAGMA foreign_keys = ON")


def _migrate(connection: Connection) -> None:
    config = settings()
    have = MigrationContext.configure(connection).get_current_heads()
    known = {step.revision for step in ScriptDirectory.from_config(config).walk_revisions()}
    newer = sorted(set(have) - known)
    if newer:
        raise NewerDatabase(
            f"the team's database has format {', '.join(newer)}, which this release of regatta "
            "does not know: it was written by a newer release. Install that one again, or name "
            "another database."
        )
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def settings() -> Config:
    """Alembic's, for the steps that ship with this package."""
    config = Config()
    config.set_main_option("script_location", str(STEPS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config
