"""Teams' servers: one for a test, one for a file, and one for each kind of database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server.records.conftest import postgresql, pytest_collection_finish
from tests.server.records.postgresql import PostgreSQL
from tests.server.team.serving import TeamServer, a_team_server

__all__ = ["postgresql", "pytest_collection_finish"]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TeamServer]:
    """One for a file: take names that no other test there takes."""
    with a_team_server(tmp_path_factory.mktemp("team")) as serving:
        yield serving


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def on_both(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TeamServer]:
    """The same, on each kind of database."""
    url = ""
    if request.param == "postgresql":
        running: PostgreSQL = request.getfixturevalue("postgresql")
        url = running.new_database()
    with a_team_server(tmp_path_factory.mktemp("team"), url=url) as serving:
        yield serving


@pytest.fixture
def server(tmp_path: Path) -> Iterator[TeamServer]:
    with a_team_server(tmp_path) as serving:
        yield serving
