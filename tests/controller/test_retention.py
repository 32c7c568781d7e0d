"""What of the runs that have ended goes: the oldest first, logs before records, and no more."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from regatta.controller.plan import Instant
from regatta.controller.retention import (
    DAY,
    UNBOUNDED,
    ClockSeen,
    EndedRun,
    EndedTry,
    Overdue,
    Retention,
    days,
    in_words,
    look_at_clock,
    next_look,
    overdue,
    past_tries,
    without_age,
)

NOW = datetime(2026, 6, 1, tzinfo=UTC)
ANYTHING = Retention(age=None, runs=None, size=None)


def ended(uid: str, days_ago: float, size: int = 10) -> EndedRun:
    return EndedRun(uid, NOW - timedelta(days=days_ago), size)


FOUR = [ended("a", 1), ended("b", 2), ended("c", 3), ended("d", 4)]

CASES: dict[str, tuple[list[EndedRun], Retention, Overdue]] = {
    "nothing has ended": ([], Retention(), Overdue([], [], [])),
    "no bounds": (FOUR, ANYTHING, Overdue([], [], [])),
    "what ended too long ago goes, the oldest first": (
        FOUR,
        replace(ANYTHING, age=2.5 * DAY),
        Overdue(["d", "c"], [], []),
    ),
    "what ended just so long ago stays": (
        FOUR,
        replace(ANYTHING, age=4 * DAY),
        Overdue([], [], []),
    ),
    "of too many the oldest go": (
        FOUR,
        replace(ANYTHING, runs=1),
        Overdue([], ["d", "c", "b"], []),
    ),
    "what is too old is not counted again": (
        FOUR,
        replace(ANYTHING, age=2.5 * DAY, runs=1),
        Overdue(["d", "c"], ["b"], []),
    ),
    "of too large logs the oldest go, and their records stay": (
        FOUR,
        replace(ANYTHING, size=25),
        Overdue([], [], ["d", "c"]),
    ),
    "logs that are gone are not removed again": (
        [ended("a", 1, 30), ended("b", 2, 0), ended("c", 3, 5)],
        replace(ANYTHING, size=30),
        Overdue([], [], ["c"]),
    ),
    "the last to end keeps its logs, however large": (
        [ended("a", 1, 1000), ended("b", 2, 1)],
        replace(ANYTHING, size=30),
        Overdue([], [], ["b"]),
    ),
    "the logs of a record that goes make room for others": (
        [ended("a", 1, 10), ended("b", 2, 10), ended("c", 9, 100)],
        Retention(age=5 * DAY, runs=None, size=20),
        Overdue(["c"], [], []),
    ),
    "an end in the future, by a clock set back, is kept": (
        [ended("a", -3)],
        replace(ANYTHING, age=1),
        Overdue([], [], []),
    ),
    "of too many an end in the future goes first: what ended since the clock is right is younger": (
        [ended("a", -3), ended("b", -2), ended("c", 1)],
        replace(ANYTHING, runs=2),
        Overdue([], ["b"], []),
    ),
    "so do its logs": (
        [ended("a", -3), ended("b", 0.1)],
        replace(ANYTHING, size=15),
        Overdue([], [], ["a"]),
    ),
    "a clock that was set back by minutes changes no order": (
        [ended("a", -0.01), ended("b", 0.1)],
        replace(ANYTHING, size=15),
        Overdue([], [], ["b"]),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_what_goes(case: tuple[list[EndedRun], Retention, Overdue]) -> None:
    runs, bounds, expected = case
    assert overdue(runs, bounds, NOW) == expected
    assert overdue(runs[::-1], bounds, NOW) == expected


some_runs = st.lists(st.tuples(st.integers(-2, 30), st.integers(0, 50)), max_size=40).map(
    lambda ends: [ended(f"u{n}", days, size) for n, (days, size) in enumerate(ends)]
)
some_bounds = st.builds(
    Retention,
    age=st.none() | st.integers(1, 30).map(lambda days: days * DAY),
    runs=st.none() | st.integers(1, 40),
    size=st.none() | st.integers(1, 400),
)


def _age(run: EndedRun) -> float:
    return (NOW - run.ended_at).total_seconds()


@given(some_runs, some_bounds)
def test_what_is_left_is_within_its_bounds_and_nothing_newer_went(
    runs: list[EndedRun], bounds: Retention
) -> None:
    gone = overdue(runs, bounds, NOW)
    records = {*gone.too_old, *gone.too_many}
    assert len(records) == len(gone.too_old) + len(gone.too_many)
    assert records.isdisjoint(gone.logs)
    order = sorted(runs, key=lambda run: (run.ended_at <= NOW, run.ended_at, run.uid))
    left = [run for run in order if run.uid not in records]
    # Only the oldest went.
    by_age = [run for run in order if run.uid not in gone.too_old]
    assert [run.uid for run in by_age[: len(gone.too_many)]] == gone.too_many
    if bounds.age is not None:
        assert len(gone.too_old) == len([r for r in runs if _age(r) > bounds.age])
    assert bounds.runs is None or len(left) <= bounds.runs
    if bounds.age is not None:
        assert all(_age(run) <= bounds.age for run in left)
    if bounds.size is not None:
        logs = [run.size for run in left if run.uid not in gone.logs]
        assert sum(logs) <= bounds.size or sum(map(bool, logs)) <= 1
        with_logs = [run.uid for run in left if run.size]
        assert with_logs[: len(gone.logs)] == gone.logs


@given(some_runs, some_bounds)
def test_no_more_goes_than_has_to(runs: list[EndedRun], bounds: Retention) -> None:
    gone = overdue(runs, bounds, NOW)
    by_uid = {run.uid: run for run in runs}
    records = {*gone.too_old, *gone.too_many}
    if gone.too_many:
        assert bounds.runs == len(runs) - len(records)
    if gone.logs:
        spared = by_uid[gone.logs[-1]].size  # the newest of those that went
        kept = sum(run.size for run in runs if run.uid not in records and run.uid not in gone.logs)
        assert bounds.size is not None
        assert kept + spared > bounds.size


@given(some_runs, some_bounds)
def test_once_it_is_gone_nothing_more_goes(runs: list[EndedRun], bounds: Retention) -> None:
    gone = overdue(runs, bounds, NOW)
    left = [
        run._replace(size=0) if run.uid in gone.logs else run
        for run in runs
        if run.uid not in {*gone.too_old, *gone.too_many}
    ]
    assert overdue(left, bounds, NOW) == Overdue([], [], [])


LOOKS: dict[str, tuple[list[EndedRun], float | None, float]] = {
    "nothing grows old": (FOUR, None, 600),
    "nothing has ended": ([], 20, 600),
    "when the next is too old": ([ended("a", 0), ended("b", 10 / DAY)], 20, 10),
    "not at once": ([ended("a", 19.9 / DAY)], 20, 1),
    "nor only after days": (FOUR, 30 * DAY, 600),
    "what is too old and still there waits for the others": ([ended("a", 1)], 20, 600),
    "an end in the future": ([ended("a", -1)], 20, 600),
}


@pytest.mark.parametrize("case", LOOKS.values(), ids=list(LOOKS))
def test_when_to_look_again(case: tuple[list[EndedRun], float | None, float]) -> None:
    runs, age, seconds = case
    assert next_look(runs, replace(ANYTHING, age=age), NOW) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        (
            Retention(),
            "the newest 2000 of the last 90 days are kept, and the newest 5.0GiB of their logs",
        ),
        (ANYTHING, "all of any age are kept, and all of their logs"),
        (
            Retention(age=3600.0, runs=1, size=1024),
            "the newest 1 of the last 1 hour are kept, and the newest 1KiB of their logs",
        ),
    ],
)
def test_bounds_are_told_in_words(bounds: Retention, words: str) -> None:
    assert in_words(bounds) == words


def test_without_bounds_nothing_goes_and_those_that_hold_by_default_are_known() -> None:
    assert UNBOUNDED == ANYTHING
    assert Retention() == Retention(age=7_776_000.0, runs=2000, size=5_368_709_120)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (2 * DAY, "2 days"),
        (DAY, "1 day"),
        (5400, "1.5 hours"),
        (3600, "1 hour"),
        (90, "1.5 minutes"),
        (60, "1 minute"),
        (59, "59 seconds"),
        (1, "1 second"),
        (0.5, "0.5 seconds"),
    ],
)
def test_a_time_is_told_in_the_largest_unit_that_it_fills(seconds: float, words: str) -> None:
    assert days(seconds) == words


def test_an_end_up_to_an_hour_ahead_is_a_clocks_doing_and_one_beyond_that_is_long_past() -> None:
    bounds = replace(ANYTHING, runs=1)
    for seconds, goes in ((3600.0, "just"), (3600.5, "ahead")):
        ahead = EndedRun("ahead", NOW + timedelta(seconds=seconds), 10)
        just = EndedRun("just", NOW, 10)
        assert overdue([ahead, just], bounds, NOW).too_many == [goes]


def test_one_that_is_just_too_old_in_no_time_is_looked_at_soon() -> None:
    assert next_look([ended("a", 2)], replace(ANYTHING, age=2 * DAY), NOW) < 60


TRIES = [EndedTry(f"{name}{n}", name, 10) for n in range(4) for name in ("a", "b")]

PAST = {
    "within the bound all stay": (TRIES, 800, []),
    "beyond it those go that ended first": (TRIES, 600, ["a0", "b0"]),
    "the last of each replica stays": (TRIES, 10, ["a0", "b0", "a1", "b1", "a2", "b2"]),
    "without a bound all stay": (TRIES, None, []),
    "what is gone is not removed again": (
        [EndedTry("a0", "a", 0), *TRIES[2:]],
        500,
        ["a1"],
    ),
}


@pytest.mark.parametrize("case", PAST.values(), ids=list(PAST))
def test_which_past_tries_of_a_live_job_lose_their_logs(
    case: tuple[list[EndedTry], int | None, list[str]],
) -> None:
    tries, size, gone = case
    assert past_tries(tries, Retention(size=size)) == gone


#: Age bound, by how many seconds the wall went on, how many of them were lived through, and for how
#: many the clock is doubted.
CLOCKS: dict[str, tuple[float | None, float, float, float]] = {
    "as fast as time goes": (90 * DAY, 50 * DAY, 50 * DAY, 0),
    "a lid that was closed for a month": (90 * DAY, 30 * DAY, 0, 0),
    "and a second": (90 * DAY, 30 * DAY + 1, 0, DAY),
    "set ahead by a year in a minute": (90 * DAY, 365 * DAY, 60, DAY),
    "set back": (90 * DAY, -365 * DAY, 60, 0),
    "a machine that is off at night": (DAY, DAY / 3, 0, 0),
    "or for longer": (DAY, DAY / 2, 0, DAY / 3),
    "a bound of minutes: an hour is nothing": (60, 3600, 0, 0),
    "a bound of minutes: more is": (60, 3601, 0, 20),
    "no bound": (None, 365 * DAY, 0, 0),
}


@pytest.mark.parametrize("case", CLOCKS.values(), ids=list(CLOCKS))
def test_for_how_long_a_clock_is_doubted(case: tuple[float | None, float, float, float]) -> None:
    age, wall, awake, doubted = case
    last = ClockSeen(Instant(NOW, 1000.0), 7.0)
    now = Instant(NOW + timedelta(seconds=wall), 1000.0 + awake)
    found = look_at_clock(last, replace(ANYTHING, age=age), now)
    assert found.at == now
    believed = 0.0 if age is None else 7.0
    assert found.believed_from == pytest.approx(now.awake + doubted if doubted else believed)


def test_the_first_look_at_a_clock_believes_it() -> None:
    assert look_at_clock(None, Retention(), Instant(NOW, 5.0)) == ClockSeen(Instant(NOW, 5.0), 0.0)


def test_while_a_clock_is_doubted_the_other_bounds_hold() -> None:
    bounds = without_age(Retention(age=DAY, runs=3, size=10))
    assert bounds == Retention(age=None, runs=3, size=10)
