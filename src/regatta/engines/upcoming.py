"""The next of a stream, or None at its end.

`anext(source, None)` would say the same in fewer words, but up to Python 3.12 it raises SystemError
where a generator ends that had waited for something before.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import TypeVar

T = TypeVar("T")


async def next_of(source: AsyncGenerator[T, None]) -> T | None:
    try:
        return await anext(source)
    except StopAsyncIteration:
        return None
