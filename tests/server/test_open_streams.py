"""Streams of a team's server: how many, and for how long."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import ExitStack, aclosing

import pytest

from regatta.server.openpai_errors import TooManyRequests, invalid_token
from regatta.server.streams.open_streams import OpenStreams, while_allowed


def test_an_account_has_so_many_streams_and_others_have_theirs() -> None:
    streams = OpenStreams(2)
    with ExitStack() as held:
        held.enter_context(streams.one_more(1))
        held.enter_context(streams.one_more(1))
        with pytest.raises(TooManyRequests, match="2 streams"), streams.one_more(1):
            pass
        with streams.one_more(2):
            pass
    with streams.one_more(1), streams.one_more(1):  # those that were closed count no more
        pass


async def _numbers(closed: list[str], last: int | None) -> AsyncGenerator[int, None]:
    try:
        number = 0
        while last is None or number < last:
            yield number
            number += 1
            await asyncio.sleep(0)
        if last == 0:
            await asyncio.Event().wait()
    finally:
        closed.append("closed")


async def _yes() -> bool:
    return True


def test_all_that_is_told_comes_through_to_the_end() -> None:
    async def read() -> list[int]:
        async with aclosing(while_allowed(_numbers([], 5), _yes, 0.0)) as told:
            return [number async for number in told]

    assert asyncio.run(read()) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("last", [None, 0])
def test_a_stream_ends_when_it_may_not_go_on_however_silent_it_is(last: int | None) -> None:
    closed: list[str] = []

    async def no() -> bool:
        return False

    async def read() -> None:
        async for _ in while_allowed(_numbers(closed, last), no, 0.01):
            pass

    asyncio.run(asyncio.wait_for(read(), 30))
    assert closed == ["closed"]


def test_who_may_not_hear_it_any_more_is_told_so() -> None:
    closed: list[str] = []

    async def revoked() -> bool:
        raise invalid_token()

    async def read() -> None:
        async for _ in while_allowed(_numbers(closed, 0), revoked, 0.01):
            pass

    with pytest.raises(type(invalid_token()), match="token is invalid"):
        asyncio.run(asyncio.wait_for(read(), 30))
    assert closed == ["closed"]


def test_who_leaves_early_closes_the_source() -> None:
    closed: list[str] = []

    async def read() -> None:
        async with aclosing(while_allowed(_numbers(closed, None), _yes)) as told:
            assert await anext(told) == 0

    asyncio.run(read())
    assert closed == ["closed"]
