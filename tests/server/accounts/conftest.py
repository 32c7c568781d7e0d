"""A database of accounts: in memory, and in a file that minds foreign keys, as a server's does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection, Engine, StaticPool, create_engine, event

from regatta.server.accounts.user_groups import ensure_groups
from regatta.server.records.metadata import METADATA
from tests.server.accounts.people import NOW


@pytest.fixture(params=["in memory", "in a file"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    if request.param == "in memory":
        made = create_engine(
            "sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False}
        )
    else:
        made = create_engine(f"sqlite:///{tmp_path}/team.db")

        @event.listens_for(made, "connect")
        def mind_foreign_keys(raw: object, _: object) -> None:
            raw.execute("PRAGMA foreign_keys = ON")  # type: ignore[attr-defined]
            raw.execute("PRAGMA synchronous = OFF")  # type: ignore[attr-defined]

    METADATA.create_all(made)
    with made.begin() as connection:
        ensure_groups(connection, NOW)
    yield made
    made.dispose()


@pytest.fixture
def connection(engine: Engine) -> Iterator[Connection]:
    with engine.begin() as opened:
        yield opened
