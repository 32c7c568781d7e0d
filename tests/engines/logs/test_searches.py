"""Searches wait for each other, and nobody else for them."""

from __future__ import annotations

import asyncio
import threading

from regatta.engines.logs.searches import AT_ONCE, OF_ONE, search


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
        searches = [asyncio.create_task(search("", take_long)) for _ in range(3 * AT_ONCE)]
        while going < AT_ONCE:
            await asyncio.sleep(0.01)
        assert await asyncio.to_thread(lambda: "free") == "free"
        assert not any(each.done() for each in searches)
        over.set()
        await asyncio.gather(*searches)

    asyncio.run(scene())
    assert most == AT_ONCE


def test_one_asker_leaves_room_for_others() -> None:
    going, lock, over = 0, threading.Lock(), threading.Event()

    def take_long() -> None:
        nonlocal going
        with lock:
            going += 1
        over.wait()

    async def scene() -> None:
        searches = [asyncio.create_task(search("mal", take_long)) for _ in range(3 * AT_ONCE)]
        while going < OF_ONE:
            await asyncio.sleep(0.01)
        assert await search("bob", lambda: "found") == "found"
        assert await search("", lambda: "found") == "found"
        for each in searches[:OF_ONE]:  # who hangs up has not stopped his searches
            each.cancel()
        await asyncio.sleep(0.1)
        assert going == OF_ONE
        over.set()
        await asyncio.gather(*searches, return_exceptions=True)
        assert going == 3 * AT_ONCE

    asyncio.run(scene())
