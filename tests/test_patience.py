"""Waits that last while things move: the tests of clusters rest on them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.patience import Patience


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def looks(patience: Patience, clock: Clock, step: float) -> Iterator[float]:
    """Seconds at each look, until patience is over."""
    began = clock.now
    while not patience.over:
        yield clock.now - began
        clock.now += step


def waited(patience: Patience, clock: Clock, step: float = 0.5) -> float:
    return list(looks(patience, clock, step))[-1]


def test_where_nothing_moves_it_ends_after_its_seconds() -> None:
    clock = Clock()
    # What there is at the first question is new; from then on nothing is.
    patience = Patience(60, lambda: "always the same", clock=clock)
    assert 60 <= waited(patience, clock) <= 65
    assert str(patience).endswith("the last 60 without anything that moved")


def test_what_moves_is_waited_for_until_it_stops() -> None:
    clock = Clock()
    patience = Patience(10, lambda: min(clock.now, 300.0), clock=clock)
    assert 200 <= waited(patience, clock) <= 215


def test_something_that_moves_once_in_a_while_is_enough() -> None:
    clock = Clock()
    patience = Patience(10, lambda: clock.now // 9, longest_seconds=300, clock=clock)
    assert 300 <= waited(patience, clock) <= 301


def test_a_machine_that_does_not_let_us_look_has_not_been_waited_for() -> None:
    clock = Clock()
    patience = Patience(10, clock=clock)
    assert waited(patience, clock, step=30) >= 10 * 30


def test_there_is_an_end_to_it() -> None:
    clock = Clock()
    patience = Patience(10, lambda: clock.now, longest_seconds=100, clock=clock)
    assert 100 <= waited(patience, clock) <= 101


@pytest.mark.parametrize("seconds", [5.0, 900.0])
def test_it_is_never_shorter_than_its_seconds(seconds: float) -> None:
    clock = Clock()
    assert waited(Patience(seconds, longest_seconds=1, clock=clock), clock) >= seconds
