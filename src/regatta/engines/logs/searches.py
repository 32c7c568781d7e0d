"""Threads that wait for searches: a few, apart from those that everything else needs.

A search may take seconds of a processor, and anybody may ask for many at once. They wait for each
other, and nobody else waits for them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

AT_ONCE = 4

P = ParamSpec("P")
T = TypeVar("T")

_pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="search")


async def search(function: Callable[P, T], *args: P.args, **more: P.kwargs) -> T:
    """Calls what may have to look for a pattern, when it is its turn."""
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(_pool, partial(function, *args, **more))
