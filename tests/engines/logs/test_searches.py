"""Searches wait for each other, and nobody else for them."""

from __future__ import annotations

import asyncio
import threading

from regatta.engines.logs.searches import AT_ONCE, search


def test_so_many_search_at_once_and_others_wait_their_turn() -> None:
    going, most, lock, over = 0, 0, threading.Lock(), threading.Event()

    def take_long() -> None:
        nonlocal going, most
        with lock:
            going += 1
            most = max(most, going)
        over.wait()
        with lock:
            going -= 1

    async def scene() -> None:
        searches = [asyncio.create_task(search(take_long)) for _ in range(3 * AT_ONCE)]
        while going < AT_ONCE:
            await asyncio.sleep(0.01)
        assert await asyncio.to_thread(lambda: "free") == "free"
        assert not any(each.done() for each in searches)
        over.set()
        await asyncio.gather(*searches)

    asyncio.run(scene())
    assert most == AT_ONCE
