"""Log lines as the kubelet sends them: times that compare, and the same lines however they came."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from regatta.engines.base import LogLine
from regatta.engines.kubernetes.engine.logs.log_lines import Unreadable, read_lines
from regatta.engines.logs.selection import LONGEST_LINE

TIMES = {
    "nanoseconds": (b"2026-01-01T10:00:00.123456789Z", "2026-01-01T10:00:00.123456789Z"),
    "zeros that were cut off": (b"2026-01-01T10:00:00.5Z", "2026-01-01T10:00:00.500000000Z"),
    "a whole second": (b"2026-01-01T10:00:00Z", "2026-01-01T10:00:00.000000000Z"),
    "a node in another zone": (b"2026-01-01T10:00:00.5+08:00", "2026-01-01T02:00:00.500000000Z"),
}
NOW = b"2026-01-01T10:00:00Z "


def read(*parts: bytes) -> list[LogLine]:
    async def arriving() -> AsyncIterator[bytes]:
        for part in parts:
            yield part

    async def lines() -> list[LogLine]:
        return [line async for together in read_lines("worker-0", arriving()) for line in together]

    return asyncio.run(lines())


def texts(*parts: bytes) -> list[str]:
    return [line.text for line in read(*parts)]


@pytest.mark.parametrize("case", TIMES.values(), ids=list(TIMES))
def test_times_compare_as_text(case: tuple[bytes, str]) -> None:
    written, at = case

    assert read(written + b" step 1\n") == [LogLine("worker-0", at, "stdout", "step 1")]


def test_an_empty_line_is_a_line() -> None:
    assert texts(NOW + b"\n") == [""]


def test_the_kubelets_own_words_are_no_log() -> None:
    with pytest.raises(Unreadable, match="unable to retrieve container logs"):
        read(b"unable to retrieve container logs for containerd://1f")


def test_lines_span_parts_and_the_last_may_have_no_end() -> None:
    assert texts(b"2026-01-01T10:00:0", b"0Z one\n2026-01-01T10:00:01Z t", b"wo") == ["one", "two"]


def test_what_came_together_is_told_together() -> None:
    async def arriving() -> AsyncIterator[bytes]:
        yield NOW + b"one\n" + NOW + b"two\n" + NOW + b"th"
        yield b"ree\n"

    async def counts() -> list[int]:
        return [len(lines) async for lines in read_lines("worker-0", arriving())]

    assert asyncio.run(counts()) == [2, 1]


def test_a_line_without_end_is_shown_in_pieces_with_its_time() -> None:
    long = b"x" * LONGEST_LINE

    pieces = read(NOW + long, b"rest\n", b"2026-01-01T10:00:01Z next\n")

    assert [line.text for line in pieces] == [long.decode(), "rest", "next"]
    assert pieces[0].at == pieces[1].at < pieces[2].at


@pytest.mark.parametrize("size", [1000, 65_536, 65_537, 1_000_000])
def test_pieces_are_the_same_however_they_came(size: int) -> None:
    whole = NOW + "aé€😀".encode() * 60_000 + b"\n" + NOW + b"next\n"

    pieces = texts(*(whole[start : start + size] for start in range(0, len(whole), size)))

    assert pieces == texts(whole)
    assert "".join(pieces) == "aé€😀" * 60_000 + "next"
    assert max(len(piece.encode()) for piece in pieces) <= LONGEST_LINE
