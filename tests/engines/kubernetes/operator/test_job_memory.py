"""Refused creates: how long they pause, and how often that is told. Since when pods go."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from regatta.controller.plan import Instant
from regatta.engines.kubernetes.operator.job_memory import FirstSeen, Note, Refusals


def full(pod: str, used: int) -> Note:
    return Note("CreateRefused", f'pods "{pod}" is forbidden: exceeded quota: used {used}')


def test_a_refused_create_pauses_from_a_second_to_five_minutes() -> None:
    refusals, pauses = Refusals(), []
    for _ in range(12):
        refusals.refused(full("job-worker-0", 2), now=100.0)
        pauses.append(refusals.pause(now=100.0))
    assert pauses[:4] == [1.0, 2.0, 4.0, 8.0]
    assert pauses[-1] == 300.0
    assert refusals.pause(now=400.0) is None, "then it is tried again"
    refusals.accepted()
    refusals.refused(full("job-worker-0", 2), now=500.0)
    assert refusals.pause(now=500.0) == 1.0, "a success starts over"


def test_one_event_for_each_thing_said_however_many_pods_it_is_said_of() -> None:
    refusals = Refusals()
    assert refusals.refused(full("job-worker-0", 2), now=0.0) is not None
    assert refusals.refused(full("job-worker-7", 9), now=1.0) is None
    other = Note("CreateRefused", "admission webhook denied the request")
    assert refusals.refused(other, now=2.0) is not None


NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize("jump", [timedelta(0), timedelta(hours=1), timedelta(hours=-1)])
def test_a_clock_that_is_set_makes_no_pod_leave_for_longer(jump: timedelta) -> None:
    leaving = FirstSeen()
    leaving.of(["a"], Instant(NOON, 100.0))
    later = NOON + timedelta(seconds=10) + jump

    assert leaving.of(["a", "b"], Instant(later, 110.0)) == {
        "a": later - timedelta(seconds=10),
        "b": later,
    }


def test_a_pod_that_is_gone_is_forgotten() -> None:
    leaving = FirstSeen()
    leaving.of(["a"], Instant(NOON, 100.0))
    assert leaving.of([], Instant(NOON, 110.0)) == {}

    assert leaving.of(["a"], Instant(NOON, 120.0)) == {"a": NOON}
