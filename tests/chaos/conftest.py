"""A team's server that is killed, on the databases of the tests of records."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.team_servers import TeamProcess
from tests.server.records.conftest import postgresql, pytest_collection_finish, url

__all__ = ["postgresql", "pytest_collection_finish", "url"]


@pytest.fixture
def server(tmp_path: Path, url: str) -> Iterator[TeamProcess]:
    server = TeamProcess(tmp_path, url)
    yield server
    server.kill()
