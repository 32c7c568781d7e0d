"""What is on record of a job outlives the job: its time to live, its engine's retention, and a
server that was away for part of its life."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection, select

from regatta.engines.local.replicas.runspec import EXIT_FILE
from regatta.server.records.job_rows import EventRow, events_of, job_of
from regatta.server.records.job_story import JobStory, story_of
from regatta.server.records.job_tables import gaps
from tests.chaos.team_servers import Member, TeamProcess, eventually, job_text, records

#: The engine is to keep one run that has ended, and no more.
RETENTION = "retention: {runs: 1}\n"


@pytest.fixture
def server(tmp_path: Path, url: str) -> Iterator[TeamProcess]:
    server = TeamProcess(tmp_path, url, settings=RETENTION)
    yield server
    server.kill()


@pytest.fixture
def ann(server: TeamProcess) -> Member:
    ann = server.account("ann")
    server.start()
    return ann


def _hand_in(ann: Member, name: str, script: str, **policy: object) -> None:
    answer = ann.submit(job_text(name, script, **policy), name)
    assert answer.status == 201, answer


def _story(server: TeamProcess, name: str) -> JobStory:
    with records(server.url) as database:
        return database.read_here(story_of, database.read_here(job_of, "ann", name).id)


def _wait_for(server: TeamProcess, name: str, state: str) -> JobStory:
    eventually(lambda: _story(server, name).row.state == state, f"{name} to be {state} on record")
    return _story(server, name)


def _events(connection: Connection, name: str) -> list[EventRow]:
    return events_of(connection, job_of(connection, "ann", name).id)


def _gaps(connection: Connection) -> list[str]:
    return list(connection.scalars(select(gaps.c.why)))


def test_a_job_whose_time_to_live_is_over_is_on_record_with_all_that_became_of_it(
    server: TeamProcess, ann: Member
) -> None:
    _hand_in(ann, "short", "echo last words; exit 7", ttlSecondsAfterFinished=1)
    place = "/regatta/v1/namespaces/user-ann/jobs/short"
    _wait_for(server, "short", "FAILED")
    eventually(lambda: ann.ask("GET", place).status == 404, "its time to live being over")
    eventually(lambda: _story(server, "short").row.gone_at is not None, "that on record")

    story = _story(server, "short")
    assert (story.row.state, story.row.exit_code, story.row.end_seen) == ("FAILED", 7, True)
    assert None not in (story.row.launched_at, story.row.completed_at)
    [replica] = story.replicas
    assert (replica.role, replica.phase, replica.exit_code) == ("t", "Failed", 7)
    [attempt] = story.attempts
    assert (attempt.outcome, attempt.blamed_role, attempt.exit_code) == ("Failed", "t", 7)
    with records(server.url) as database:
        assert "Submitted" in {event.reason for event in database.read_here(_events, "short")}
    _assert_openpai_tells(ann, "short", "FAILED", 7)


def test_what_an_owner_deletes_is_deleted_from_the_records_and_its_name_is_free(
    server: TeamProcess, ann: Member
) -> None:
    _hand_in(ann, "unwanted", "true")
    _wait_for(server, "unwanted", "SUCCEEDED")
    assert ann.ask("DELETE", "/api/v1/jobs/ann~unwanted").status == 202
    assert ann.ask("GET", "/api/v2/jobs/ann~unwanted").status == 404
    assert ann.ask("GET", "/api/v2/jobs").body == []
    again = ann.submit(job_text("unwanted"), "unwanted")
    assert (again.status, again.body["code"]) == (409, "NotPossible")  # the very same submit
    assert ann.submit(job_text("unwanted"), "another").status == 201


def test_a_job_that_ended_while_no_server_ran_is_told_whole_and_the_blindness_with_it(
    server: TeamProcess, ann: Member, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    _hand_in(ann, "long", f"until [ -e {go} ]; do sleep 0.05; done; exit 3")
    _wait_for(server, "long", "RUNNING")
    server.kill()
    go.touch()
    eventually(lambda: any(tmp_path.rglob(EXIT_FILE)), "its end, with nobody to look")
    server.start()

    story = _wait_for(server, "long", "FAILED")
    assert (story.row.exit_code, story.row.end_seen) == (3, True)
    [replica] = story.replicas
    assert (replica.phase, replica.exit_code) == ("Failed", 3)
    with records(server.url) as database:
        eventually(
            lambda: "the server was not running" in database.read_here(_gaps),
            "the records saying where they were blind",
        )
    _assert_openpai_tells(ann, "long", "FAILED", 3)


def test_what_the_engines_retention_removed_is_on_record_still(
    server: TeamProcess, ann: Member
) -> None:
    for number, code in enumerate((4, 5, 0)):
        _hand_in(ann, f"run-{number}", f"exit {code}")
        _wait_for(server, f"run-{number}", "FAILED" if code else "SUCCEEDED")
    server.stop()
    server.start()  # it tidies up as it starts
    path = "/regatta/v1/runs"

    def kept() -> set[str]:
        runs = ann.ask("GET", path).body["items"]
        return {run["name"] for run in runs if not run.get("removed")}

    eventually(lambda: kept() == {"run-2"}, "the engine keeping one run")
    for name, code in (("run-0", 4), ("run-1", 5)):
        story = _story(server, name)
        assert (story.row.state, story.row.exit_code) == ("FAILED", code)
        assert [replica.exit_code for replica in story.replicas] == [code]
        _assert_openpai_tells(ann, name, "FAILED", code)


def _assert_openpai_tells(ann: Member, name: str, state: str, code: int) -> None:
    """Read as OpenPAI's clients do, also when the engine has nothing left to tell."""
    answer = ann.ask("GET", f"/api/v2/jobs/ann~{name}")
    assert answer.status == 200, answer
    status = answer.body["jobStatus"]
    assert (status["state"], status["appExitCode"]) == (state, code)
    [role] = answer.body["taskRoles"].values()
    [task] = role["taskStatuses"]
    assert (task["taskState"], task["containerExitCode"]) == (state, code)
