"""A real engine behind a real server, spoken to over real sockets."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.doors import Regatta, a_regatta

# A mistake of ours must not pass for a sentence to a user.
os.environ["REGATTA_TRACEBACK"] = "1"


@pytest.fixture(scope="session")
def regatta(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Regatta]:
    with a_regatta(tmp_path_factory.mktemp("regatta")) as shared:
        assert shared("server", "start").code == 0
        yield shared


@pytest.fixture
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Regatta]:
    with a_regatta(tmp_path_factory.mktemp("fresh")) as own:
        yield own
