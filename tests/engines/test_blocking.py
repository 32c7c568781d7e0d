"""An asynchronous engine for callers that block: inline, without an event loop."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncGenerator

import pytest

from regatta.api.errors import JobNotFound
from regatta.engines.blocking import Blocking, Inline


async def twice(number: int) -> int:
    return number * 2


async def refused() -> None:
    raise JobNotFound("nobody")


async def waits() -> None:
    await asyncio.sleep(0)


class Counting:
    """A stream that says when it was closed."""

    def __init__(self) -> None:
        self.closed = False

    async def numbers(self, upto: int) -> AsyncGenerator[int, None]:
        try:
            for number in range(upto):
                yield await twice(number)
        finally:
            self.closed = True


def test_a_call_gives_its_answer_or_its_refusal() -> None:
    assert Inline().run(twice(4)) == 8
    with pytest.raises(JobNotFound, match="nobody"):
        Inline().run(refused())


def test_an_engine_that_needs_a_loop_is_told_so_instead_of_hanging() -> None:
    with pytest.raises(RuntimeError, match="it needs a LoopThread"):
        Inline().run(waits())


def test_a_stream_is_read_to_its_end_and_closed() -> None:
    counting = Counting()
    assert list(Inline().stream(counting.numbers(3))) == [0, 2, 4]
    assert counting.closed


def test_a_stream_that_its_reader_leaves_is_closed() -> None:
    counting = Counting()
    stream = Inline().stream(counting.numbers(3))
    assert next(stream) == 0
    stream.close()
    assert counting.closed


def test_what_a_stream_raises_is_raised_where_it_is_read() -> None:
    async def broken() -> AsyncGenerator[int, None]:
        yield 1
        raise JobNotFound("gone")

    stream = Inline().stream(broken())
    assert next(stream) == 1
    with pytest.raises(JobNotFound):
        next(stream)


def test_the_blocking_face_needs_no_asyncio() -> None:
    """`regatta get` would wait for its import every time."""
    program = "import sys, regatta.engines.blocking; sys.exit('asyncio' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


def test_every_method_of_the_contract_has_its_blocking_twin() -> None:
    from regatta.engines.base import Engine

    asked = {name for name in vars(Engine) if not name.startswith("_")}
    assert asked == {name for name in vars(Blocking) if not name.startswith("_")}
