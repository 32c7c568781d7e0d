"""A node's clock that is set costs no job its deadline."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from regatta.api.job import JobStatus
from regatta.controller.policies.timers import until_deadline
from regatta.engines.kubernetes.operator.reconciler import SteadyClock
from tests.controller.builders import a_job

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


class Node:
    """A machine whose clock somebody sets."""

    def __init__(self) -> None:
        self.up, self.set_by = 1000.0, 0.0

    def monotonic(self) -> float:
        return self.up

    def wall(self) -> datetime:
        return BEGAN + timedelta(seconds=self.up + self.set_by)


def a_clock(node: Node) -> SteadyClock:
    return SteadyClock(node.monotonic, node.wall)


@pytest.mark.parametrize("seconds", [-3600.0, 3600.0])
def test_a_clock_that_is_set_takes_nothing_from_a_deadline(seconds: float) -> None:
    node = Node()
    clock = a_clock(node)
    job = a_job().with_workers(1).policy(active_deadline_seconds=60).obj()
    started = replace(job, status=JobStatus(started_awake=clock.now().awake))

    node.up += 10
    node.set_by = seconds

    assert until_deadline(started, clock.now()) == pytest.approx(50)
    assert clock.now().wall == node.wall(), "people see the time that the node has"


def test_the_next_operator_goes_on_where_the_last_one_was() -> None:
    node = Node()
    last = a_clock(node)
    node.up += 500

    assert a_clock(node).now() == last.now()
