"""Ctrl-C at every step of handing work to the loop's thread."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import AsyncGenerator, Callable, Coroutine
from concurrent.futures import CancelledError, Future
from typing import Any

import pytest

from regatta.engines.loop_thread import LoopThread

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

    async def outer() -> AsyncGenerator[int, None]:
        try:
            async for number in inner():
                yield number
        finally:
            await asyncio.sleep(0)
            ended.append(True)

    thread = LoopThread()
    thread._loop.set_exception_handler(lambda _, context: said.append(context))
    stream = thread.stream(outer())
    assert next(stream) == 1

    def once(work: Coroutine[Any, Any, Any], loop: asyncio.AbstractEventLoop) -> Future[Any]:
        monkeypatch.undo()
        return moment(work, loop)

    monkeypatch.setattr(asyncio, "run_coroutine_threadsafe", once)
    with pytest.raises(KeyboardInterrupt):
        next(stream)
    gc.collect()
    thread.close()
    gc.collect()

    assert (ended, said) == ([True], [])


@pytest.mark.parametrize("moment", [before, just_after, when_it_runs])
def test_work_that_is_interrupted_is_given_up(
    moment: HandOver, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, ended, said = [], [], []

    async def work() -> None:
        begun.append(True)
        try:
            await asyncio.sleep(3600)
        finally:
            ended.append(True)

    thread = LoopThread()
    thread._loop.set_exception_handler(lambda _, context: said.append(context))
    monkeypatch.setattr(asyncio, "run_coroutine_threadsafe", moment)
    with pytest.raises(KeyboardInterrupt):
        thread.run(work())
    monkeypatch.undo()
    thread.run(asyncio.sleep(0))
    thread.close()
    gc.collect()

    assert (ended, said) == (begun, [])
    # Just after it was handed over it may have begun or not.
    assert begun in {before: [[]], just_after: [[], [True]], when_it_runs: [[True]]}[moment]


def test_closing_ends_the_streams_of_other_threads_without_a_word() -> None:
    ended, told = [], []
    begun = threading.Event()

    async def source() -> AsyncGenerator[int, None]:
        try:
            yield 1
            await asyncio.sleep(3600)
        finally:
            ended.append(True)

    thread = LoopThread()

    def read() -> None:
        try:
            for number in thread.stream(source()):
                told.append(number)
                begun.set()
        except CancelledError:
            told.append(0)

    reader = threading.Thread(target=read)
    reader.start()
    assert begun.wait(60)
    thread.close()
    reader.join(60)

    assert not reader.is_alive()
    assert ended == [True]
    assert told[0] == 1
