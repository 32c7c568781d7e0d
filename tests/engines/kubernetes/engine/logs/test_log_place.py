"""A log that is read again goes on behind the last line that was told: none twice, none lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regatta.api.errors import BadRequest
from regatta.engines.base import LogLine
from regatta.engines.kubernetes.engine.logs.log_place import (
    Place,
    Position,
    Read,
    in_batches,
    in_order_of_time,
)
from regatta.engines.logs.selection import BATCH, LARGEST_BATCH


def at(moment: float, text: str = "") -> LogLine:
    return LogLine("w", f"2026-01-01T10:00:{moment:012.9f}Z", "stdout", text)


def told(place: Place, lines: list[LogLine]) -> list[str]:
    return [read.line.text for read in place.news(lines)]


def resumed(text: str) -> Place:
    place = Place("uid", Position.read(text))
    place.reopened()
    return place


def as_the_api_sends(log: list[LogLine], place: Place) -> list[LogLine]:
    return [line for line in log if f"{line.at[:19]}Z" >= place.since]


def test_a_log_that_is_opened_again_tells_only_what_is_new() -> None:
    place = Place("uid")
    assert told(place, [at(1, "a"), at(2, "b"), at(2, "c")]) == ["a", "b", "c"]

    place.reopened()

    assert place.since == "2026-01-01T10:00:02Z"
    assert told(place, [at(2, "b"), at(2, "c"), at(2, "d"), at(3, "e")]) == ["d", "e"]


def test_batches_are_of_so_many_lines_and_fewer_of_long_ones() -> None:
    def cut(count: int, length: int) -> list[int]:
        reads = [Read(at(number, "x" * length), "uid", Position()) for number in range(count)]
        batches = list(in_batches(reads))
        assert [read for batch in batches for read in batch] == reads
        return [len(batch) for batch in batches]

    assert cut(BATCH + 1, 10) == [BATCH, 1]
    assert cut(9, LARGEST_BATCH // 4) == [4, 4, 1]
    assert cut(0, 10) == []


def test_nothing_is_lost_when_the_line_of_the_place_was_rotated_away() -> None:
    place = Place("uid")
    told(place, [at(1.5, "a"), at(1.5, "b")])

    place.reopened()

    assert told(place, [at(1.7, "c"), at(1.8, "d")]) == ["c", "d"]


def test_a_place_without_lines_is_the_beginning() -> None:
    place = resumed(str(Position(2)))

    assert place.since == ""
    assert place.run == 2
    assert told(place, [at(1, "a")]) == ["a"]


@given(
    st.lists(st.integers(0, 30), max_size=12),
    st.integers(0, 12),
)
def test_whoever_goes_on_at_any_line_misses_and_repeats_nothing(
    tenths: list[int], cut: int
) -> None:
    """Times that are shared and, as with two streams, a little out of order."""
    log = [at(tenth / 10, str(number)) for number, tenth in enumerate(_nearly_sorted(tenths))]
    first = Place("uid")
    before = first.news(log)[:cut]
    position = before[-1].position if before else Position()

    again = resumed(str(position))
    rest = told(again, as_the_api_sends(log, again))

    assert [read.line.text for read in before] + rest == [line.text for line in log]


def _nearly_sorted(tenths: list[int]) -> list[int]:
    """Neighbours within one second may change places."""
    moments = sorted(tenths)
    for number in range(0, len(moments) - 1, 2):
        if moments[number] // 10 == moments[number + 1] // 10:
            moments[number : number + 2] = moments[number + 1], moments[number]
    return moments


WRONG = ["", "-", "x", "1:2", "1:2026:3", "1:2026-01-01T10:00:00Z:1", "-1::0", "0::0;", "٣::0"]


@pytest.mark.parametrize("text", WRONG)
def test_a_position_of_somebody_elses_is_refused(text: str) -> None:
    with pytest.raises(BadRequest, match="is no position in a log of this cluster"):
        Position.read(text)


def test_pods_are_put_in_order_of_time_and_each_keeps_its_own() -> None:
    def read(uid: str, moment: float) -> Read:
        return Read(at(moment, f"{uid}{moment:g}"), uid, Position())

    reads = [read("a", 1), read("a", 3), read("a", 2), read("b", 2.5), read("b", 4)]

    assert [r.line.text for r in in_order_of_time(reads)] == ["a1", "b2.5", "a3", "a2", "b4"]
