"""The work queue: each key once in line, one worker per key, nothing lost."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from regatta.engines.kubernetes.operator.workqueue import (
    KeyLine,
    QueueClosed,
    QueueSettings,
    WorkQueue,
)
from tests.engines.kubernetes.loops import eventually, in_a_loop

KEYS = st.sampled_from("abcd")


class AQueueOfKeys(RuleBasedStateMachine):
    """Plays adds, alarms and workers against the obvious model: what must still be looked at."""

    def __init__(self) -> None:
        super().__init__()
        self.line: KeyLine[str] = KeyLine()
        self.now = 0.0
        #: Keys with a change that no worker has begun to look at.
        self.owed: set[str] = set()
        self.with_workers: set[str] = set()
        self.alarms: dict[str, float] = {}

    @rule(key=KEYS)
    def a_change(self, key: str) -> None:
        self.line.add(key, self.now)
        self.owed.add(key)

    @rule(key=KEYS, seconds=st.integers(1, 10))
    def a_later_look(self, key: str, seconds: int) -> None:
        when = self.now + seconds
        self.line.add_at(key, when)
        self.alarms[key] = min(when, self.alarms.get(key, when))

    @rule(seconds=st.integers(1, 5))
    def time_passes(self, seconds: int) -> None:
        self.now += seconds
        self.line.ring(self.now)
        due = {key for key, when in self.alarms.items() if when <= self.now}
        self.owed |= due
        self.alarms = {key: when for key, when in self.alarms.items() if key not in due}

    @rule()
    def a_worker_comes(self) -> None:
        taken = self.line.take(self.now)
        if taken is None:
            assert not self.owed - self.with_workers
            return
        key, waited = taken
        assert key in self.owed, "looked at without a reason"
        assert key not in self.with_workers, "two workers have the same key"
        assert waited >= 0
        self.owed.discard(key)
        self.with_workers.add(key)

    @precondition(lambda self: self.with_workers)
    @rule(pick=st.randoms(use_true_random=False))
    def a_worker_is_done(self, pick: object) -> None:
        key = pick.choice(sorted(self.with_workers))  # type: ignore[attr-defined]
        self.line.done(key, self.now)
        self.with_workers.discard(key)

    @invariant()
    def what_is_owed_and_free_is_in_line_once(self) -> None:
        assert len(self.line) == len(self.owed - self.with_workers)
        assert self.line.busy == len(self.with_workers)
        assert self.line.next_alarm() == min(self.alarms.values(), default=None)


AQueueOfKeys.TestCase.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)
test_nothing_is_lost_doubled_or_worked_on_twice = AQueueOfKeys.TestCase


def test_failures_double_the_pause_from_5_ms_to_5_minutes_and_success_forgets_them() -> None:
    line: KeyLine[str] = KeyLine()
    pauses = [line.retry_delay("a") for _ in range(100)]
    assert pauses[:4] == [0.005, 0.01, 0.02, 0.04]
    assert pauses[-1] == 300.0
    assert line.retry_delay("b") == 0.005
    line.forget("a")
    assert line.retry_delay("a") == 0.005


class Figures:
    """What a metrics observer is told."""

    def __init__(self) -> None:
        self.depths: list[int] = []
        self.calls: Counter[str] = Counter()

    def depth(self, keys: int) -> None:
        self.depths.append(keys)

    def waited(self, seconds: float) -> None:
        assert seconds >= 0
        self.calls["waited"] += 1

    def worked(self, seconds: float) -> None:
        assert seconds >= 0
        self.calls["worked"] += 1

    def retried(self) -> None:
        self.calls["retried"] += 1


@in_a_loop
async def test_workers_share_keys_but_never_one_key() -> None:
    figures = Figures()
    queue: WorkQueue[int] = WorkQueue(
        QueueSettings(first_retry_seconds=0.001, longest_retry_seconds=0.004), observer=figures
    )
    at_work: set[int] = set()
    seen: Counter[int] = Counter()

    async def worker() -> None:
        while True:
            try:
                key = await queue.get()
            except QueueClosed:
                return
            assert key not in at_work
            at_work.add(key)
            await asyncio.sleep(0)
            at_work.discard(key)
            seen[key] += 1
            if seen[key] < 3:
                queue.retry(key)
            else:
                queue.forget(key)
            queue.done(key)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(8):
            tasks.create_task(worker())
        for key in range(200):
            queue.add(key)
            queue.add(key)
        await eventually(lambda: len(seen) == 200 and min(seen.values()) >= 3 and queue.settled)
        queue.close()
    assert set(seen.values()) == {3}
    assert figures.calls == {"waited": 600, "worked": 600, "retried": 400}
    assert figures.depths[-1] == 0


@in_a_loop
async def test_an_earlier_alarm_overtakes_a_later_one() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add_after("slow", 3600)
    queue.add_after("a", 3600)
    queue.add_after("a", 0.01)
    assert await queue.get() == "a"
    queue.done("a")
    assert queue.settled
    queue.close()


@in_a_loop
async def test_a_worker_that_is_cancelled_passes_its_turn_on() -> None:
    queue: WorkQueue[str] = WorkQueue()
    first = asyncio.ensure_future(queue.get())
    second = asyncio.ensure_future(queue.get())
    await asyncio.sleep(0)
    queue.add("a")
    first.cancel()
    assert await second == "a"
    queue.close()


@in_a_loop
async def test_a_closed_queue_sends_everybody_home() -> None:
    queue: WorkQueue[str] = WorkQueue()
    waiting = [asyncio.ensure_future(queue.get()) for _ in range(3)]
    await asyncio.sleep(0)
    queue.close()
    for worker in waiting:
        with pytest.raises(QueueClosed):
            await worker
