"""Who waits for a thread while the database is found away does not find it out once more."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from regatta.api.errors import NoRecord, RecordsAway
from regatta.server.records.waiting.turn_threads import TurnThreads


@pytest.fixture
def threads() -> Iterator[TurnThreads]:
    threads = TurnThreads(1, "one")
    yield threads
    threads.close()


def test_those_who_waited_are_told_the_same_and_the_next_one_asks(threads: TurnThreads) -> None:
    may_end, asked = threading.Event(), []

    def find_out() -> None:
        may_end.wait(60)
        raise RecordsAway("it is away")

    async def all_of_them() -> list[BaseException | None]:
        calls = [threads.call(find_out), *(threads.call(lambda: asked.append(1)) for _ in range(3))]
        told = asyncio.gather(*calls, return_exceptions=True)
        await asyncio.sleep(0)  # all of them have asked
        may_end.set()
        found = await told
        await threads.call(lambda: asked.append(2))
        return found

    told = asyncio.run(all_of_them())
    assert [(type(each), str(each)) for each in told] == [(RecordsAway, "it is away")] * 4
    assert asked == [2]


@pytest.mark.parametrize("answer", [None, NoRecord("there is none")])
def test_those_who_waited_ask_where_somebody_was_answered_since(
    answer: NoRecord | None,
) -> None:
    threads = TurnThreads(2, "two")
    begun, answers, asked = threading.Semaphore(0), threading.Event(), []

    def find_out() -> None:
        raise RecordsAway("it is away")

    def be_answered() -> None:
        begun.release()
        answers.wait(60)
        if answer is not None:
            raise answer

    async def all_of_them() -> None:
        first = asyncio.ensure_future(threads.call(be_answered))
        second = asyncio.ensure_future(threads.call(be_answered))
        third = asyncio.ensure_future(threads.call(lambda: asked.append(1)))
        for _ in range(2):
            await asyncio.to_thread(begun.acquire, True, 60)
        with pytest.raises(RecordsAway):
            threads._in_turn(0.0, find_out)
        answers.set()
        await asyncio.gather(first, second, return_exceptions=True)
        await third

    asyncio.run(all_of_them())
    assert asked == [1]
    threads.close()
