"""How long a status that can wait does."""

from __future__ import annotations

import pytest

from regatta.engines.kubernetes.operator.urgency import APART, BUSY_EVERY, EVERY, Pace


def test_writes_that_can_wait_keep_apart_and_none_waits_for_ever() -> None:
    pace = Pace()
    assert pace.wait(0.0, 0.4, busy=False) == pytest.approx(EVERY - 0.4)
    assert pace.wait(0.0, 2.0, busy=False) is None
    assert pace.wait(0.0, 2.0, busy=False) is not None, "another job has just written"
    assert pace.wait(0.0, 2.0, busy=False, eager=True) is None
    assert pace.wait(0.0, 2.0 + 3 * APART, busy=True) is not None
    assert pace.wait(0.0, BUSY_EVERY, busy=True) is None
