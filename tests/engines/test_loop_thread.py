"""Ctrl-C at every step of handing work to the loop's thread."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import AsyncGenerator, Callable, Coroutine
from concurrent.futures import Future
from typing import Any

import pytest
from regatta.engines.kubernetes.engine.bridge import Bridge

from regatta.engines.kubernetes.access.config import ClusterAccess
from regatta.engines.kubernetes.access.credentials import ConfiguredCredentials
from regatta.engines.kubernetes.api.client import KubeClient

HandOver = Callable[[Coroutine[Any, Any, Any], asyncio.AbstractEventLoop], Future[Any]]
really: HandOver = asyncio.run_coroutine_threadsafe


def before(work: Coroutine[Any, Any, Any], loop: asyncio.AbstractEventLoop) -> Future[Any]:
    raise KeyboardInterrupt


def just_after(work: Coroutine[Any, Any, Any], loop: asyncio.AbstractEventLoop) -> Future[Any]:
    really(work, loop)
    raise KeyboardInterrupt


def when_it_runs(work: Coroutine[Any, Any, Any], loop: asyncio.AbstractEventLoop) -> Future[Any]:
    really(work, loop)
    while not work.cr_suspended:  # type: ignore[attr-defined]
        time.sleep(0.01)
    raise KeyboardInterrupt


@pytest.mark.parametrize("moment", [before, just_after, when_it_runs])
def test_a_stream_that_is_interrupted_ends_without_a_word(
    moment: HandOver, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended, said = [], []

    async def inner() -> AsyncGenerator[int, None]:
        yield 1
        await asyncio.sleep(3600)

    async def outer(client: KubeClient) -> AsyncGenerator[int, None]:
        try:
            async for number in inner():
                yield number
        finally:
            await asyncio.sleep(0)
            ended.append(True)

    bridge = Bridge(ClusterAccess("https://127.0.0.1:1", ConfiguredCredentials(token="t")))
    bridge._loop.set_exception_handler(lambda _, context: said.append(context))
    stream = bridge.stream(outer)
    assert next(stream) == 1

    def once(work: Coroutine[Any, Any, Any], loop: asyncio.AbstractEventLoop) -> Future[Any]:
        monkeypatch.undo()
        return moment(work, loop)

    monkeypatch.setattr(asyncio, "run_coroutine_threadsafe", once)
    with pytest.raises(KeyboardInterrupt):
        next(stream)
    gc.collect()
    bridge.close()
    gc.collect()

    assert (ended, said) == ([True], [])
