from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.doors import Regatta, a_regatta


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Regatta]:
    with a_regatta(tmp_path) as own:
        yield own
