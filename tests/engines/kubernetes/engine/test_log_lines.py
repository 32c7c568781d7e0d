"""Log lines as the kubelet sends them: times that compare, nothing told twice, nothing lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

from regatta.api.errors import RegattaError
from regatta.engines.base import LogLine, LogQuery
from regatta.engines.kubernetes.engine.log_lines import (
    LONGEST_LINE,
    Place,
    Unreadable,
    Wanted,
    parse_line,
    read_lines,
)

TIMES = {
    "nanoseconds": (b"2026-01-01T10:00:00.123456789Z", "2026-01-01T10:00:00.123456789Z"),
    "zeros that were cut off": (b"2026-01-01T10:00:00.5Z", "2026-01-01T10:00:00.500000000Z"),
    "a whole second": (b"2026-01-01T10:00:00Z", "2026-01-01T10:00:00.000000000Z"),
    "a node in another zone": (b"2026-01-01T10:00:00.5+08:00", "2026-01-01T02:00:00.500000000Z"),
}


@pytest.mark.parametrize("case", TIMES.values(), ids=list(TIMES))
def test_times_compare_as_text(case: tuple[bytes, str]) -> None:
    written, read = case

    assert parse_line("worker-0", written + b" step 1") == LogLine(
        "worker-0", read, "stdout", "step 1"
    )


def test_an_empty_line_is_a_line() -> None:
    assert parse_line("worker-0", b"2026-01-01T10:00:00Z ").text == ""


def test_the_kubelets_own_words_are_no_log() -> None:
    with pytest.raises(Unreadable, match="unable to retrieve container logs"):
        parse_line("worker-0", b"unable to retrieve container logs for containerd://1f")


def read(*parts: bytes) -> list[str]:
    async def arriving() -> AsyncIterator[bytes]:
        for part in parts:
            yield part

    async def lines() -> list[str]:
        return [line.text async for line in read_lines("w", arriving())]

    return asyncio.run(lines())


def test_lines_span_parts_and_the_last_may_have_no_end() -> None:
    assert read(b"2026-01-01T10:00:0", b"0Z one\n2026-01-01T10:00:01Z t", b"wo") == ["one", "two"]


def test_a_line_without_end_is_shown_in_pieces() -> None:
    long = b"x" * LONGEST_LINE

    pieces = read(b"2026-01-01T10:00:00Z " + long, b"rest\n", b"2026-01-01T10:00:01Z next\n")

    assert pieces == [long.decode(), "rest", "next"]


def test_a_log_that_is_opened_again_tells_only_what_is_new() -> None:
    def at(second: int, text: str) -> LogLine:
        return LogLine("w", f"2026-01-01T10:00:0{second}.000000000Z", "stdout", text)

    place = Place()
    first = [at(1, "a"), at(2, "b"), at(2, "c")]
    assert [line.text for line in first if place.is_news(line)] == ["a", "b", "c"]

    place.resume()
    again = [at(2, "b"), at(2, "c"), at(2, "d"), at(3, "e")]

    assert place.since == "2026-01-01T10:00:02Z"
    assert [line.text for line in again if place.is_news(line)] == ["d", "e"]


def test_lines_before_the_time_asked_for_are_passed_over() -> None:
    wanted = Wanted(LogQuery(since=datetime(2026, 1, 1, 10, 0, 0, 500_000, UTC), grep="^s"))

    lines = {
        "2026-01-01T10:00:00.400000000Z": "step 0",
        "2026-01-01T10:00:00.600000000Z": "step 1",
        "2026-01-01T10:00:00.700000000Z": "other",
    }

    kept = [at for at, text in lines.items() if LogLine("w", at, "stdout", text) in wanted]
    assert kept == ["2026-01-01T10:00:00.600000000Z"]
    assert wanted.since == "2026-01-01T10:00:00Z"


def test_a_bad_pattern_says_what_to_write() -> None:
    with pytest.raises(RegattaError, match="put a backslash before"):
        Wanted(LogQuery(grep="("))
