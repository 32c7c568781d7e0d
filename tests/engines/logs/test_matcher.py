"""Searching log lines for a person's pattern, which may be a bad one."""

from __future__ import annotations

import gc
import os
import threading

import pytest

from regatta.api.errors import PatternTooSlow, RegattaError
from regatta.engines.logs.matcher import Matcher
from tests.engines.local.jobs import alive
from tests.engines.local.runs import eventually

FOR_EVER = "(a+)+$"
ITS_VICTIM = "a" * 46 + "b"


def searchers() -> set[int]:
    """Processes below this one that search."""
    with open(f"/proc/self/task/{threading.get_native_id()}/children", encoding="ascii") as file:
        return {pid for pid in map(int, file.read().split()) if alive(pid)}


@pytest.mark.parametrize(
    ("pattern", "lines", "found"),
    [
        ("loss", ["loss 1", "step 2", "a loss"], [True, False, True]),
        ("^é+$", ["éé", "e", ""], [True, False, False]),
        ("", ["anything", ""], [True, True]),
        ("x\0y", ["x\0y", "xy"], [True, False]),
    ],
)
def test_a_pattern_is_found_where_it_is(pattern: str, lines: list[str], found: list[bool]) -> None:
    matcher = Matcher(pattern)
    assert matcher.matches(lines) == found
    assert matcher.matches([]) == []
    assert matcher.matches(lines[::-1]) == found[::-1]
    matcher.close()


@pytest.mark.parametrize("pattern", ["(", "a{99999999999999999999}", "(" * 5000 + ")" * 5000])
def test_what_is_no_pattern_is_told_at_once(pattern: str) -> None:
    with pytest.raises(RegattaError, match="is not a regular expression"):
        Matcher(pattern)


def test_a_pattern_that_takes_for_ever_is_given_up_while_other_threads_run_on() -> None:
    turns, over = [0], threading.Event()

    def run_on() -> None:
        while not over.wait(0.01):
            turns[0] += 1

    other = threading.Thread(target=run_on)
    other.start()
    try:
        with pytest.raises(PatternTooSlow, match="takes too long on a line; simplify it"):
            Matcher(FOR_EVER, seconds=2).matches(["fine", ITS_VICTIM])
    finally:
        over.set()
        other.join()
    assert turns[0] > 10


def test_a_matcher_that_gave_up_can_be_asked_again() -> None:
    matcher = Matcher(FOR_EVER, seconds=0.2)
    with pytest.raises(PatternTooSlow):
        matcher.matches([ITS_VICTIM])
    assert matcher.matches(["aaa"]) == [True]
    matcher.close()


def test_no_process_stays_behind_whether_a_matcher_is_closed_or_forgotten() -> None:
    before = searchers()
    closed, forgotten = Matcher("a"), Matcher("b")
    closed.matches(["a"])
    forgotten.matches(["b"])
    assert len(searchers() - before) == 2
    closed.close()
    del forgotten
    gc.collect()
    assert searchers() == before


def test_a_searcher_that_was_killed_is_told_as_such() -> None:
    before = searchers()
    matcher = Matcher("a")
    matcher.matches(["a"])
    (pid,) = searchers() - before
    os.kill(pid, 9)
    eventually(lambda: not alive(pid))
    with pytest.raises(RegattaError, match="the search ended early"):
        matcher.matches(["a"])
