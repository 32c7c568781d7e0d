"""Pauses after failures: growing, bounded, spread."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from regatta.engines.kubernetes.api.backoff import Backoff


@given(st.integers(1, 200), st.floats(0, 1))
def test_pauses_stay_between_the_first_and_the_longest(failures: int, luck: float) -> None:
    backoff = Backoff(0.5, 30.0, spread=lambda low, high: low + (high - low) * luck)
    pauses = [backoff.failed() for _ in range(failures)]
    assert all(0.5 <= pause <= 30.0 for pause in pauses)
    assert pauses == sorted(pauses)
    assert backoff.failures == failures


def test_many_that_fail_together_do_not_come_back_together() -> None:
    pauses = {Backoff(0.5, 30.0).failed() for _ in range(100)}
    assert len(pauses) > 50


def test_success_starts_over() -> None:
    backoff = Backoff(0.5, 30.0)
    for _ in range(10):
        backoff.failed()
    backoff.worked()
    assert backoff.failed() <= 0.75
