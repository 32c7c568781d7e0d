"""A job's tasks at each of its attempts, as records tell them. Pure."""

from __future__ import annotations

import random
from typing import Any

import pytest
from msgspec.structs import replace

from regatta.api.job import RestartScope
from regatta.api.load import load_job
from regatta.api.openpai.wanted import Setting
from regatta.server.openpai.jobs import job_answers
from regatta.server.openpai.jobs.job_answers import (
    AttemptStory,
    detail,
    job_attempts,
    names_the_engines,
)
from regatta.server.openpai.jobs.task_answers import at_each_attempt, history_of, roles_shown
from regatta.server.openpai.jobs.telling.author_names import story_told
from regatta.server.openpai.jobs.telling.role_plans import plan_named
from regatta.server.openpai_states import State
from regatta.server.records.job_rows import AttemptRow, JobRow, ReplicaRow
from regatta.server.records.job_story import JobStory
from tests.openpai_configs import a_task_role, version_one, version_two


def a_row(**changes: Any) -> JobRow:
    fields: dict[str, Any] = dict.fromkeys(JobRow.__struct_fields__)
    words = ("id", "engine", "namespace", "engine_name", "username", "name", "virtual_cluster")
    more = ("priority", "submit_state", "phase", "reason", "message", "trigger_message", "notes")
    fields |= dict.fromkeys((*words, *more), "x") | {"message": "", "notes": "", "reason": ""}
    counts = ("protocol", "attempt", "retries", "retries_user", "retries_platform")
    fields |= dict.fromkeys((*counts, "retries_resource", "total_tasks", "total_roles"), 0)
    fields |= {"total_gpus": 0, "submitted_at": 1, "execution_type": "START", "end_seen": True}
    fields |= {"state": "RUNNING", "sub_state": "AttemptRunning", "tags": ()}
    return JobRow(**{**fields, **changes})


def a_replica(role: str, attempt: int = 0, index: int = 0, **changes: Any) -> ReplicaRow:
    fields: dict[str, Any] = dict.fromkeys(ReplicaRow.__struct_fields__)
    fields |= dict.fromkeys(("name", "node", "address", "gpus", "reason", "message"), "")
    fields |= {"uid": f"{role}-{index}-{attempt}", "role": role, "replica_index": index}
    fields |= {"attempt": attempt, "phase": "Running", "restarts": 0, "last_seen_at": 0}
    return ReplicaRow(**{**fields, **changes})


def a_story(text: str, row: JobRow, *replicas: ReplicaRow, attempts: Any = ()) -> JobStory:
    job = load_job(text, setting=Setting(user="ann")).job
    return JobStory(row=row, job=job, attempts=tuple(attempts), replicas=replicas)


ONE = version_one("j", a_task_role("ps_server", "true", 2))


def states(story: JobStory, attempt: int = 0) -> list[State]:
    return [task.task_state for task in roles_shown(story, attempt)["ps_server"].task_statuses]


@pytest.mark.parametrize(
    ("job", "replica", "state"),
    [
        ("RUNNING", {"phase": "Running"}, "RUNNING"),
        ("WAITING", {"phase": "Pending"}, "WAITING"),
        ("WAITING", {"phase": "Starting"}, "WAITING"),
        ("STOPPING", {"phase": "Running"}, "STOPPING"),
        ("SUCCEEDED", {"phase": "Succeeded", "exit_code": 0}, "SUCCEEDED"),
        ("FAILED", {"phase": "Failed", "exit_code": 3}, "FAILED"),
        ("STOPPED", {"phase": "Failed", "exit_code": 143, "reason": "Stopped"}, "STOPPED"),
        ("UNKNOWN", {"phase": "Unknown"}, "UNKNOWN"),
    ],
)
def test_a_task_is_in_the_state_that_its_replica_says(
    job: str, replica: dict[str, Any], state: str
) -> None:
    story = a_story(ONE, a_row(state=job), a_replica("ps-server", **replica))
    assert states(story)[0] == state


@pytest.mark.parametrize(
    ("job", "state"),
    [("WAITING", "WAITING"), ("STOPPED", "STOPPED"), ("FAILED", "STOPPED"), ("UNKNOWN", "UNKNOWN")],
)
def test_a_task_without_a_replica_waits_until_its_job_is_over(job: str, state: str) -> None:
    assert states(a_story(ONE, a_row(state=job))) == [state, state]


def test_an_earlier_attempt_shows_the_replicas_of_then() -> None:
    first = a_replica("ps-server", phase="Failed", exit_code=5, reason="Error")
    story = a_story(ONE, a_row(attempt=1), first, a_replica("ps-server", 1))
    assert states(story, 0) == [State.FAILED, State.STOPPED]
    assert states(story, 1) == [State.RUNNING, State.WAITING]


def test_where_tasks_start_again_alone_their_lives_are_counted() -> None:
    text = version_two("j", ["true"], extras={"gangAllocation": False})
    document = text.replace("dockerImage", "taskRetryCount: 2\n    dockerImage")
    lives = (
        a_replica("worker-0", phase="Failed", exit_code=5, created_at=1),
        a_replica("worker-0", 1, created_at=2),
    )
    story = a_story(document, a_row(attempt=1), *lives)
    plan = plan_named(story, "worker_0")
    assert plan is not None
    history = history_of(story, plan, 0, 1)
    assert (history.retries, history.task_state) == (1, State.RUNNING)
    assert [one.attempt_state for one in history.attempts] == [State.FAILED, State.RUNNING]


def test_ports_are_by_the_label_that_the_config_gave_them() -> None:
    ports = [{"label": "rpc", "portNumber": 2}]
    text = version_one("j", a_task_role("ps_server", "true", portList=ports))
    replica = a_replica("ps-server", first_port=100, last_port=119)
    (task,) = roles_shown(a_story(text, a_row(), replica), 0)["ps_server"].task_statuses
    assert task.container_ports == {"rpc": "100,101", "http": "102", "ssh": "103"}


def test_what_is_told_of_a_task_is_in_its_authors_names() -> None:
    waits = a_replica("ps-server", phase="Pending", message="j-1-ps-server-0: ErrImagePull")
    row = a_row(state="WAITING", protocol=1, engine_name="j-1", name="j_1")
    story = a_story(ONE, row, waits)
    plan, told = plan_named(story, "ps_server"), "ps_server[0]: ErrImagePull"
    assert plan is not None
    assert history_of(story, plan, 0, 0).attempts[0].container_exit_diagnostics == told
    shown = detail(story, 0).task_roles["ps_server"].task_statuses[0]
    assert shown.container_exit_diagnostics == told


def test_an_attempt_before_the_last_is_blamed_on_who_failed_first() -> None:
    told = AttemptRow(
        number=0,
        started_at=1,
        ended_at=2,
        outcome="Restarted",
        reason="Error",
        message="broke",
        blamed_role="ps-server",
        blamed_index=1,
        exit_code=5,
    )
    story = a_story(ONE, a_row(attempt=1), attempts=[told])
    shown = detail(story, 0).job_status
    assert (shown.app_exit_code, shown.attempt_state) == (5, State.FAILED)
    assert shown.app_exit_trigger_task_role_name == "ps_server"
    assert shown.app_exit_trigger_message == "broke"
    assert shown.state is State.RUNNING
    assert detail(story, 1).job_status.app_exit_code is None
    assert not job_attempts(story, [0])[0].is_latest


def test_a_job_that_was_killed_for_memory_says_so() -> None:
    row = a_row(state="FAILED", exit_code=137, trigger_role="ps-server", trigger_index=0)
    killed = a_replica("ps-server", phase="Failed", exit_code=137, reason="OOMKilled")
    spec = AttemptStory(a_story(ONE, row, killed), 0).spec
    assert spec is not None
    assert (spec.phrase, spec.type) == ("UserContainerDockerOOMKilled", "USER_FAILURE")


def test_a_job_that_came_past_the_server_shows_what_was_seen_of_it() -> None:
    story = JobStory(row=a_row(), job=None, attempts=(), replicas=(a_replica("worker", 0, 1),))
    tasks = roles_shown(story, 0)["worker"].task_statuses
    assert [task.task_state for task in tasks] == [State.WAITING, State.RUNNING]


def test_a_story_is_told_once_for_all_of_its_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of a job that failed a thousand times has all of them in its story."""
    times: list[JobStory] = []

    def counted(story: JobStory) -> JobStory:
        times.append(story)
        return story_told(story)

    monkeypatch.setattr(job_answers, "story_told", counted)
    failed = [
        a_replica("ps-server", number, message="j-ps-server-0 failed") for number in range(20)
    ]
    story = a_story(ONE, a_row(protocol=1, attempt=19, engine_name="j", name="j"), *failed)
    shown = job_attempts(story, range(19, -1, -1))
    assert [one.attempt_index for one in shown] == [*range(19, -1, -1)]
    assert len(times) == 1


@pytest.mark.parametrize(
    ("message", "read"),
    [
        ("waits for j-x1: ps-server-0 is not there", True),
        ("it is told as j-x1", True),
        ("held back so that train-it-4f1c9e, which is ahead of it, can start", False),
        ("waits for CPUs: 2 of 4 are taken", False),
    ],
)
def test_a_document_is_read_for_names_that_nobody_wrote(message: str, read: bool) -> None:
    row = a_row(protocol=1, state="WAITING", engine_name="j-x1", name="J", message=message)
    assert names_the_engines(row) is read


def test_a_name_that_is_its_authors_is_part_of_many_words() -> None:
    row = a_row(protocol=1, state="WAITING", engine_name="e", name="e", message="waits for memory")
    assert not names_the_engines(row)


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("alone", [False, True], ids=["all again", "one by one"])
def test_what_is_told_of_an_attempt_is_the_same_from_less(
    seed: int, alone: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Random histories: tasks that ran on, started late, started twice, or never."""
    dice = random.Random(seed)
    count = dice.randint(1, 6)
    replicas = [
        a_replica(
            dice.choice(("ps-server", "worker")),
            attempt,
            index,
            uid=f"{attempt}-{index}-{life}",
            phase=dice.choice(("Running", "Failed", "Succeeded")),
            exit_code=dice.choice((None, 0, 3, 137)),
            reason=dice.choice(("", "OOMKilled", "Evicted")),
            created_at=dice.randrange(9),
            started_at=dice.choice((None, dice.randrange(9))),
        )
        for attempt in range(count)
        for index in range(3)
        for life in range(dice.randrange(3))
    ]
    ends = [
        AttemptRow(
            number=number,
            started_at=number,
            ended_at=number + 1,
            outcome=dice.choice(("Failed", "Restarted", "Completed")),
            reason="",
            message=f"ended {number}",
            blamed_role=dice.choice((None, "ps-server", "worker")),
            blamed_index=dice.randrange(3),
            exit_code=dice.choice((None, 3)),
        )
        for number in range(count)
        if dice.random() < 0.8
    ]
    done = {"minSucceededTaskCount": 1, "minFailedTaskCount": 2}
    roles = [a_task_role("ps_server", "true", 3, **done), a_task_role("worker", "true", 3)]
    text = version_one("j", *roles)
    state = dice.choice(("RUNNING", "FAILED", "SUCCEEDED", "STOPPED"))
    row = a_row(protocol=1, state=state, attempt=count - 1, engine_name="j", name="j")
    story = a_story(text, row, *replicas, attempts=ends)
    assert story.job is not None
    if alone:
        policy = replace(story.job.spec.run_policy, restart_scope=RestartScope.REPLICA)
        spec = replace(story.job.spec, run_policy=policy)
        story = replace(story, job=replace(story.job, spec=spec))

    shown = job_attempts(story, range(count))

    monkeypatch.setattr(job_answers, "at_each_attempt", lambda story: [story] * count)
    assert shown == job_attempts(story, range(count))


def test_of_a_job_that_starts_again_as_a_whole_little_is_looked_at_for_each_attempt() -> None:
    replicas = [a_replica("ps-server", number, index) for number in range(50) for index in range(2)]
    told = at_each_attempt(a_story(ONE, a_row(attempt=49), *replicas))
    assert [len(story.replicas) for story in told] == [2] * 50
