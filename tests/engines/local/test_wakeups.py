"""Timers and the awake clock."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from regatta.engines.local import clock as clocks
from regatta.engines.local.clock import LONGEST_GAP, SystemClock
from regatta.engines.local.wakeups import Timers


def test_timers_come_due_in_their_order() -> None:
    timers = Timers()
    timers.set_due("b", 2.0)
    timers.set_due("a", 1.0)
    assert timers.next() == 1.0
    assert timers.take_due(1.5) == {"a"}
    assert timers.take_due(1.5) == set()
    assert timers.take_due(2.0) == {"b"}
    assert timers.next() is None


def test_a_new_timer_replaces_the_old_one() -> None:
    timers = Timers()
    timers.set_due("a", 1.0)
    timers.set_due("a", 5.0)
    assert timers.take_due(2.0) == set()
    timers.set_due("a", None)
    assert timers.next() is None


def test_timers_that_are_replaced_for_days_do_not_pile_up() -> None:
    timers = Timers()
    for due in range(10_000):
        timers.set_due("a", float(due))
    assert len(timers._heap) < 100
    assert timers.take_due(9999.0) == {"a"}


def test_everybody_can_be_made_due_at_once() -> None:
    timers = Timers()
    timers.set_due("a", 1e9)
    timers.set_due("b", 2e9)
    assert timers.take_all() == {"a", "b"}
    assert timers.next() is None


def test_awake_time_goes_on_from_where_the_last_engine_left_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seconds = 100.0
    monkeypatch.setattr(clocks, "time", SimpleNamespace(monotonic=lambda: seconds))
    clock = SystemClock()
    clock.resume(1000.0)
    seconds = 103.0
    assert clock.now().awake == 1003.0


def test_a_long_gap_counts_only_as_long_as_the_engine_could_have_watched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seconds = 100.0
    monkeypatch.setattr(clocks, "time", SimpleNamespace(monotonic=lambda: seconds))
    clock = SystemClock()
    seconds = 100.0 + 3600
    assert clock.now().awake == LONGEST_GAP
