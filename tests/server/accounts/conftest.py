"""A database of accounts: the team's own, on SQLite and on PostgreSQL, made once and emptied."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, Engine

from regatta.server.accounts.tables import AUDIT, GROUPS, MEMBERSHIPS, TOKENS, USERS
from regatta.server.accounts.user_groups import ensure_groups
from regatta.server.records.team_database import Database
from tests.server.accounts.people import NOW
from tests.server.records.conftest import postgresql, pytest_collection_finish
from tests.server.records.postgresql import PostgreSQL

__all__ = ["postgresql", "pytest_collection_finish"]


@pytest.fixture(scope="session", params=["sqlite", "postgresql"])
def accounts(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Database]:
    url = f"sqlite:///{tmp_path_factory.mktemp('accounts')}/team.db"
    if request.param == "postgresql":
        server: PostgreSQL = request.getfixturevalue("postgresql")
        url = server.new_database()
    database = Database(url)
    yield database
    database.close()


@pytest.fixture
def engine(accounts: Database) -> Engine:
    def begin(connection: Connection) -> None:
        for table in (AUDIT, TOKENS, MEMBERSHIPS, USERS, GROUPS):
            connection.execute(table.delete())
        ensure_groups(connection, NOW)

    accounts.run_here(begin)
    return accounts._engine


@pytest.fixture
def connection(engine: Engine) -> Iterator[Connection]:
    with engine.connect() as opened, opened.begin() as transaction:
        yield opened
        transaction.rollback()
