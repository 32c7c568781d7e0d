"""A real engine behind a real server, spoken to over real sockets."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.doors import Regatta, a_regatta


@pytest.fixture(scope="session")
def regatta(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Regatta]:
    with a_regatta(tmp_path_factory.mktemp("regatta")) as shared:
        assert shared("server", "start").code == 0
        yield shared


@pytest.fixture
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Regatta]:
    with a_regatta(tmp_path_factory.mktemp("fresh")) as own:
        yield own
