"""Turns: one at a time by key, and no memory of keys that nobody wants."""

from __future__ import annotations

import asyncio

import pytest

from regatta.server.team.submitting.turns import Turns


def test_of_those_with_one_key_one_is_at_it_and_others_are_not_held_up() -> None:
    turns, inside, most = Turns(), [], []

    async def work(key: str) -> None:
        async with turns.of(key):
            inside.append(key)
            most.append((inside.count(key), len(inside)))
            await asyncio.sleep(0)
            inside.remove(key)

    async def story() -> None:
        await asyncio.gather(*(work(key) for key in "ab" * 5))

    asyncio.run(story())
    assert max(same for same, _ in most) == 1
    assert max(together for _, together in most) == 2
    assert len(turns) == 0


def test_whoever_leaves_or_breaks_gives_the_turn_to_the_next() -> None:
    turns = Turns()

    async def story() -> None:
        async with turns.of("a"):
            waiting = asyncio.ensure_future(_take(turns))
            await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
        with pytest.raises(ZeroDivisionError):
            async with turns.of("a"):
                _ = 1 / 0
        await _take(turns)

    asyncio.run(story())
    assert len(turns) == 0


async def _take(turns: Turns) -> None:
    async with turns.of("a"):
        pass
