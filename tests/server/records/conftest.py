"""Every test of records that asks for a database runs twice: on SQLite, and on PostgreSQL.

PostgreSQL is installed after collection, before any test's clock runs, and started once a worker.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from regatta.server.records.team_database import Database
from tests.engines.local.opening import engine, home, open_engine
from tests.server.records.postgresql import PostgreSQL, install_postgresql, why_no_postgresql

__all__ = ["engine", "home", "open_engine"]


def pytest_collection_finish(session: pytest.Session) -> None:
    wanted = any("postgresql]" in item.nodeid or "[postgresql" in item.nodeid
                 for item in session.items)  # fmt: skip
    if wanted and not session.config.option.collectonly and why_no_postgresql() is None:
        install_postgresql()


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgreSQL]:
    """This worker's own. Leave it running: a test that stops one makes its own."""
    server = PostgreSQL()
    try:
        yield server.start()
    finally:
        server.remove()


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Of a database that is empty."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/team/records.sqlite"
        return
    server: PostgreSQL = request.getfixturevalue("postgresql")
    url = server.new_database()
    yield url
    server.drop(url)


@pytest.fixture
def database(url: str) -> Iterator[Database]:
    database = Database(url)
    yield database
    database.close()
