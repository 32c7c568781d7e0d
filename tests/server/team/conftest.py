"""A team's server for the tests that change nothing which others look at, and PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server.records.conftest import postgresql, pytest_collection_finish
from tests.server.team.serving import TeamServer, a_team_server

__all__ = ["postgresql", "pytest_collection_finish"]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[TeamServer]:
    with a_team_server(tmp_path) as serving:
        yield serving
