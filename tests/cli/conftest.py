"""One server for all tests of this folder that do not care, and a fresh one for those that do."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.doors import OpenTerminal, Regatta, a_regatta, terminals

# A mistake of ours must not pass for a sentence to a user.
os.environ["REGATTA_TRACEBACK"] = "1"

_numbers = count(1)


@pytest.fixture(scope="session")
def regatta(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Regatta]:
    with a_regatta(tmp_path_factory.mktemp("regatta")) as shared:
        yield shared


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Regatta]:
    with a_regatta(tmp_path) as own:
        yield own


@pytest.fixture
def name() -> str:
    """A job name that no other test uses."""
    return f"job-{next(_numbers)}"


@pytest.fixture
def own(tmp_path: Path) -> Regatta:
    """Commands with a state folder of their own, and no server."""
    return Regatta(tmp_path)


@pytest.fixture
def terminal(regatta: Regatta) -> Iterator[OpenTerminal]:
    with terminals(regatta) as opens:
        yield opens


@pytest.fixture
def own_terminal(own: Regatta) -> Iterator[OpenTerminal]:
    with terminals(own) as opens:
        yield opens
