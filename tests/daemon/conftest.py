from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.doors import Regatta, a_regatta

# A mistake of ours must not pass for a sentence to a user.
os.environ["REGATTA_TRACEBACK"] = "1"


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Regatta]:
    with a_regatta(tmp_path) as own:
        yield own
