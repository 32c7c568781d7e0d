"""Which of a config's rules decided its end, as records tell it. Pure."""

from __future__ import annotations

from typing import Any

import pytest

from regatta.server.openpai.jobs.telling.completion_triggers import Trigger, trigger_of
from regatta.server.openpai_states import State
from regatta.server.records.job_rows import ReplicaRow
from tests.openpai_configs import a_task_role, version_one
from tests.server.openpai.jobs.test_task_answers import a_replica, a_row, a_story

SAID = "ps_server[0] was lost"
ALL = "All Tasks are completed"


def failed(index: int, attempt: int = 0, **more: Any) -> ReplicaRow:
    return a_replica("ps-server", attempt, index, phase="Failed", exit_code=7, **more)


def done(index: int, at: int) -> ReplicaRow:
    return a_replica("ps-server", 0, index, phase="Succeeded", exit_code=0, finished_at=at)


def failure(count: int, needed: int) -> str:
    return f"FailedTaskCount {count} has reached MinFailedTaskCount {needed} in the TaskRole"


@pytest.mark.parametrize(
    ("rules", "replicas", "message"),
    [
        ({}, [failed(0)], failure(1, 1)),
        ({}, [failed(0), failed(1)], failure(2, 1)),
        ({"minFailedTaskCount": 2}, [failed(0), failed(1), a_replica("other")], failure(2, 2)),
        ({}, [failed(0), failed(1, reason="Stopped")], failure(1, 1)),
        # A task that failed before and runs now does not count.
        ({}, [failed(0, 1), failed(1, 0), a_replica("ps-server", 1, 1)], failure(1, 1)),
        # No rule was met: a machine was lost, say.
        ({}, [], SAID),
        ({"minFailedTaskCount": 2}, [failed(0)], SAID),
        ({"minFailedTaskCount": None}, [failed(0)], SAID),
    ],
)
def test_a_failure_says_how_many_tasks_failed_and_how_many_it_takes(
    rules: dict[str, Any], replicas: list[ReplicaRow], message: str
) -> None:
    text = version_one("j", a_task_role("ps_server", "true", 3, **rules))
    story = a_story(text, a_row(protocol=1, state="FAILED"), *replicas)
    found = trigger_of(story, 1, State.FAILED, "ps-server", 0, SAID)
    assert found == Trigger(message=message, role="ps_server", index=0)


def test_a_success_names_the_task_with_which_there_were_enough() -> None:
    roles = (a_task_role("x", "true"), a_task_role("ps_server", "true", 4, minSucceededTaskCount=2))
    row = a_row(protocol=1, state="SUCCEEDED")
    story = a_story(version_one("j", *roles), row, done(0, 30), done(1, 20), done(3, 10))
    message = "SucceededTaskCount 3 has reached MinSucceededTaskCount 2 in the TaskRole"
    found = trigger_of(story, 0, State.SUCCEEDED, None, None, ALL)
    assert found == Trigger(message=message, role="ps_server", index=1)


@pytest.mark.parametrize("rules", [{}, {"minSucceededTaskCount": 2}])
def test_where_all_had_to_end_they_have(rules: dict[str, Any]) -> None:
    text = version_one("j", a_task_role("ps_server", "true", 2, **rules))
    story = a_story(text, a_row(protocol=1, state="SUCCEEDED"), done(0, 1))
    assert trigger_of(story, 0, State.SUCCEEDED, None, None, ALL) == Trigger(message=ALL)


def test_whoever_stopped_it_met_no_rule_and_a_paddlejob_has_none_of_openpais() -> None:
    text = version_one("j", a_task_role("ps_server", "true"))
    stopped = a_story(text, a_row(protocol=1, state="STOPPED"), failed(0))
    assert trigger_of(stopped, 0, State.STOPPED, None, None, "stopped") == Trigger(
        message="stopped"
    )
    ours = a_story(text, a_row(protocol=0, state="FAILED"), failed(0))
    found = trigger_of(ours, 0, State.FAILED, "ps-server", 0, SAID)
    assert found == Trigger(message=SAID, role="ps_server", index=0)
