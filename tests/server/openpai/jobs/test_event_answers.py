"""Events as OpenPAI's clients read them, from what is on record. Pure."""

from __future__ import annotations

from typing import Any

from regatta.server.openpai.jobs.event_answers import events_shown
from regatta.server.openpai.jobs.job_shapes import OpenPaiEvent
from regatta.server.records.job_rows import EventRow
from tests.openpai_configs import a_task_role, version_one
from tests.server.openpai.jobs.test_task_answers import a_replica, a_row, a_story

TEXT = version_one("Two_1", a_task_role("ps_server", "true", 2))
LIVES = (
    a_replica("ps-server", 0, 1, created_at=100),
    a_replica("ps-server", 1, 1, created_at=200),
)


def shown(said: str, at: int = 150, **row: Any) -> OpenPaiEvent:
    event = EventRow(engine_id=1, at=at, type="Warning", reason="R", message=said, count=1)
    told = {"engine_name": "two-1", "name": "Two_1", "username": "ann", "protocol": 1, **row}
    return events_shown(a_story(TEXT, a_row(**told), *LIVES), [event], None).data[0]


def test_an_event_about_one_task_says_which_and_who_played_it_then() -> None:
    event = shown("two-1-ps-server-1 exited with code 7")
    assert (event.taskrole_name, event.task_index) == ("ps_server", 1)
    assert event.task_name == "ann~Two_1-ps_server-1"
    assert event.message == "ps_server[1] exited with code 7"
    assert event.pod_uid == LIVES[0].uid
    assert shown("two-1-ps-server-1 was lost", at=200).pod_uid == LIVES[1].uid
    assert shown("created 1 pod: two-1-ps-server-1", at=99).pod_uid == LIVES[0].uid
    unseen = shown("two-1-ps-server-0 was lost")
    assert (unseen.task_index, unseen.pod_uid) == (0, "")


def test_an_event_about_the_job_names_no_task() -> None:
    event = shown("created 2 pods: two-1-ps-server-0, two-1-ps-server-1")
    assert (event.taskrole_name, event.task_name, event.task_index) == ("", "", -1)
    assert event.pod_uid == ""


def test_why_a_job_waits_is_told_of_the_task_that_it_is_about() -> None:
    event = shown("other", state="WAITING", message="two-1-ps-server-1: ErrImagePull")
    assert event.message == "ps_server[1]: ErrImagePull"
    assert (event.taskrole_name, event.task_index) == ("ps_server", 1)


def test_a_paddlejobs_event_says_which_task_and_keeps_its_words() -> None:
    event = shown("two-1-ps-server-1 was lost", protocol=0)
    assert (event.message, event.task_index) == ("two-1-ps-server-1 was lost", 1)
