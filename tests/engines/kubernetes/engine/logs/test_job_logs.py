"""Many logs at once, put in the order of time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest

from regatta.engines.base import LogLine
from regatta.engines.kubernetes.api.kube_errors import ApiError
from regatta.engines.kubernetes.engine.logs.job_logs import merged
from regatta.engines.kubernetes.engine.logs.log_place import Position, Read
from tests.engines.kubernetes.loops import in_a_loop


def read(uid: str, second: int) -> Read:
    at = f"2026-01-01T10:00:{second:02}.000000000Z"
    return Read(LogLine(uid, at, "stdout", f"{uid} {second}"), uid, Position())


async def a_log(*batches: list[Read]) -> AsyncGenerator[list[Read], None]:
    for batch in batches:
        await asyncio.sleep(0)
        yield batch


@in_a_loop
async def test_lines_of_many_logs_come_in_the_order_of_time() -> None:
    a = a_log([read("a", 1), read("a", 4)], [read("a", 5)])
    b = a_log([read("b", 2)], [read("b", 3), read("b", 6)])
    async with aclosing(merged([a, b])) as batches:
        seconds = [int(r.line.text.split()[1]) async for reads in batches for r in reads]

    assert seconds == [1, 2, 3, 4, 5, 6]


@in_a_loop
async def test_what_one_log_is_refused_for_is_told_while_the_others_still_begin() -> None:
    left: list[str] = []

    async def slow() -> AsyncGenerator[list[Read], None]:
        try:
            await asyncio.sleep(0.01)
            yield [read("a", 1)]
        finally:
            left.append("slow")

    async def refused() -> AsyncGenerator[list[Read], None]:
        raise ApiError(403, "Forbidden", "no right")
        yield []

    async with aclosing(merged([slow(), refused()])) as batches:
        with pytest.raises(ApiError, match="no right"):
            await anext(batches)

    assert left == ["slow"]
