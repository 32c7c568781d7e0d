"""Choosing lines while a loop goes on."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from regatta.api.errors import PatternTooSlow
from regatta.engines.base import LogLine, LogQuery
from regatta.engines.kubernetes.engine.logs.log_place import Position, Read
from regatta.engines.kubernetes.engine.logs.sieve import sieve_for
from regatta.engines.logs import matcher
from tests.engines.kubernetes.loops import in_a_loop


def reads(*texts: str, at: str = "2026-01-01T10:00:00.600000000Z") -> list[Read]:
    return [Read(LogLine("w", at, "stdout", text), "uid", Position()) for text in texts]


@in_a_loop
async def test_lines_are_chosen_by_time_and_by_pattern() -> None:
    query = LogQuery(since=datetime(2026, 1, 1, 10, 0, 0, 500_000, UTC), grep="^s")
    with sieve_for(query) as sieve:
        early = reads("step 0", at="2026-01-01T10:00:00.400000000Z")
        chosen = await sieve.choose([*early, *reads("step 1", "other")])

    assert [read.line.text for read in chosen] == ["step 1"]
    assert sieve.since == "2026-01-01T10:00:00Z"


@in_a_loop
async def test_a_pattern_without_end_is_given_up_while_the_loop_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(matcher, "SECONDS", 0.3)
    ticks = 0

    async def ticking() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0)
            ticks += 1

    ticker = asyncio.create_task(ticking())
    with sieve_for(LogQuery(grep="(a+)+$")) as sieve:
        searching = asyncio.create_task(sieve.choose(reads("a" * 60 + "b")))
        await asyncio.sleep(0)
        begun = ticks
        with pytest.raises(PatternTooSlow, match="takes too long"):
            await searching
    ticker.cancel()

    assert ticks - begun > 100
