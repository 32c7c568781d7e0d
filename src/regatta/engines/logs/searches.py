"""Threads that wait for searches: a few, apart from those that everything else needs.

A search may take seconds of a processor, and anybody may ask for many at once. They wait for each
other, and nobody else waits for them; of one who asks there are never so many that the others find
no thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import ParamSpec, TypeVar
from weakref import WeakValueDictionary

AT_ONCE = 4
#: Of one asker.
OF_ONE = 2

P = ParamSpec("P")
T = TypeVar("T")

_pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="search")


#: Each is there while somebody searches.
_of_one: WeakValueDictionary[tuple[asyncio.AbstractEventLoop, str], asyncio.Semaphore] = (
    WeakValueDictionary()
)


async def search(asker: str, function: Callable[P, T], *args: P.args, **more: P.kwargs) -> T:
    """Calls what may have to look for a pattern, when it is its turn. `asker`: empty for nobody in
    particular."""
    loop, call = asyncio.get_running_loop(), partial(function, *args, **more)
    if not asker:
        return await loop.run_in_executor(_pool, call)
    turn = _of_one.setdefault((loop, asker), asyncio.Semaphore(OF_ONE))
    await turn.acquire()
    begun = _pool.submit(call)
    # A thread searches on when nobody waits for it any more, and it is still the asker's.
    begun.add_done_callback(lambda _: _in_loop(loop, turn.release))
    return await asyncio.wrap_future(begun)


def _in_loop(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    with suppress(RuntimeError):  # it is closed
        loop.call_soon_threadsafe(call)
