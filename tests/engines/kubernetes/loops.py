"""Tests that need an event loop: each gets a fresh one, and must not hang."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable, Coroutine
from typing import Any

from tests.patience import Patience


def in_a_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        async def bounded() -> None:
            async with asyncio.timeout(900):
                await test(*args, **kwargs)

        asyncio.run(bounded())

    run.__signature__ = inspect.signature(test)  # type: ignore[attr-defined]
    return run


async def eventually(condition: Callable[[], object], seconds: float = 30.0) -> None:
    """Polls until it holds; the failure shows the condition's own line."""
    patience = Patience(seconds)
    while not condition():
        assert not patience.over, inspect.getsource(condition).strip()
        await asyncio.sleep(0.01)
