"""Whatever happens to the children, in whatever order, the job reaches the right end."""

from __future__ import annotations

import os
from collections.abc import Callable
from random import SystemRandom

import pytest

from tests.controller.histories import History

HISTORIES_A_BATCH = 500
BATCHES = 6


@pytest.mark.parametrize("batch", range(BATCHES))
def test_every_random_history_ends_right(
    batch: int, record_property: Callable[[str, object], None]
) -> None:
    """Every run explores others; a failure names its seed, and REGATTA_SEED repeats just that.

    With REGATTA_HISTORIES as well, every batch plays so many, each time the same.
    """
    given, wanted = os.environ.get("REGATTA_SEED"), os.environ.get("REGATTA_HISTORIES")
    first = int(given) if given else SystemRandom().randrange(2**48)
    count = int(wanted) if wanted else 1 if given else HISTORIES_A_BATCH
    if wanted:
        first += batch * count
    for seed in range(first, first + count):
        History(seed).play()
    record_property("random histories of jobs that ended right", count)
