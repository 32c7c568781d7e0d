"""Jobs between people, records and engine: over a real server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml
from sqlalchemy import update

from regatta.api.job import Job
from regatta.server.records.job_lists import list_jobs
from regatta.server.records.job_rows import JobRow, job_by_id, job_of
from regatta.server.records.job_tables import jobs
from regatta.server.team.forgetting import clean
from regatta.server.team.team_settings import TeamSettings
from tests.doors import eventually, shell_job
from tests.server.team.serving import NO_LIMITS, Answer, TeamServer, a_team_server

JOBS = "/regatta/v1/jobs"


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TeamServer]:
    settings = TeamSettings(rates=NO_LIMITS, keep_days=1)
    with a_team_server(tmp_path_factory.mktemp("desk"), settings=settings) as server:
        yield server


def _send(team: TeamServer, user: str, text: str, **more: Any) -> Answer:
    return team.ask("POST", JOBS, team.token(user), body={"text": text, **more})


def _row(team: TeamServer, user: str, name: str) -> JobRow:
    return team.database.read_here(job_of, user, name)


def _folders(team: TeamServer, job_id: str) -> list[Path]:
    return list(team.work.glob(f"*/jobs/{job_id}"))


def _all_folders(team: TeamServer) -> list[Path]:
    """But those whose removal goes on by itself."""
    return list(team.work.glob("*/jobs/[!.]*"))


def _ended(team: TeamServer, user: str, name: str, state: str = "SUCCEEDED") -> JobRow:
    eventually(lambda: _row(team, user, name).state == state, f"{name} to be {state}")
    return _row(team, user, name)


def test_what_was_accepted_is_on_record_at_once(team: TeamServer) -> None:
    sent = _send(team, "early", shell_job("first", "sleep 60"))
    assert sent.status == 201
    row = _row(team, "early", "first")
    assert (row.username, row.name, row.namespace) == ("early", "first", "user-early")
    assert row.engine_uid == sent.json["job"]["metadata"]["uid"]
    assert row.state in ("WAITING", "RUNNING")


def test_a_submit_that_ends_between_two_looks_is_known_to_the_second(
    team: TeamServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first look, by uid, is before the submit is finished, and the second, by place, after."""
    sent = _send(team, "quick", shell_job("between", "sleep 60"))
    assert sent.status == 201
    monkeypatch.setattr("regatta.server.team.desk.owners_of", lambda *_: {})
    job = asyncio.run(team.team.engine.get("user-quick", "between"))
    assert asyncio.run(team.team.desk.owner_of(job)) == "quick"


def test_two_people_may_use_one_name_and_one_key(team: TeamServer) -> None:
    """A key says that a submission was sent before by the same person, and of nobody else's."""
    uids = {
        _send(team, user, shell_job("shared"), key="k").json["job"]["metadata"]["uid"]
        for user in ("one", "two", "one")
    }
    assert len(uids) == 2


def test_a_file_that_names_another_namespace_runs_in_its_owners_own(team: TeamServer) -> None:
    text = shell_job("elsewhere").replace("metadata:", "metadata:\n  namespace: kube-system")
    sent = _send(team, "mover", text)
    assert sent.json["job"]["metadata"]["namespace"] == "user-mover"


def test_a_namespace_on_the_command_line_that_is_anothers_is_refused(team: TeamServer) -> None:
    refused = _send(team, "mover", shell_job("theirs"), namespace="user-one")
    assert refused.code == (403, "NotAllowed")
    assert "jobs of mover are in namespace user-mover" in refused.json["message"]


def test_a_clients_own_shell_means_nothing_here(team: TeamServer) -> None:
    refused = _send(team, "ann", shell_job("shell"), shell={"directory": "/root", "python": "/x"})
    assert refused.code == (422, "ShellRefused")
    assert "on a team's server" in refused.json["message"]


def test_a_refused_submit_leaves_no_record_and_no_folder(team: TeamServer) -> None:
    before = _all_folders(team)
    refused = _send(team, "hasty", shell_job("huge", replicas=100_000))
    assert refused.status == 422, refused.body
    found = team.database.read_here(list_jobs).jobs
    assert not [row for row in found if row.username == "hasty"]
    assert _all_folders(team) == before


def test_a_share_that_nobody_named_is_one_for_the_servers_settings(team: TeamServer) -> None:
    """What a client's variable says of it is not taken here."""
    role = {"name": "main", "taskNumber": 1, "command": "true"}
    config = {
        "jobName": "code",
        "image": "x",
        "codeDir": "$PAI_DEFAULT_FS_URI/code",
        "taskRoles": [role],
    }
    sent = _send(team, "ann", json.dumps(config), defaultFsUri="/srv/share")
    assert sent.status == 422, sent.body
    (problem,) = sent.json["problems"]
    assert "team.defaultFsUri" in problem["message"]
    assert "PAI_DEFAULT_FS_URI=" not in problem["message"]


def test_a_dry_run_leaves_nothing_behind(team: TeamServer) -> None:
    before = _all_folders(team)
    shown = team.ask(
        "POST", JOBS + "?dryRun=true", team.token("dry"), body={"text": shell_job("x")}
    )
    assert shown.status == 200, shown.body
    assert _all_folders(team) == before
    assert not team.ask("GET", JOBS, team.token("dry")).json["items"]


def test_an_ended_job_gives_its_name_to_the_next_and_its_record_stays(team: TeamServer) -> None:
    _send(team, "again", shell_job("same", "exit 3"))
    first = _ended(team, "again", "same", "FAILED")
    assert _send(team, "again", shell_job("same")).status == 201
    second = _ended(team, "again", "same")
    assert second.id != first.id

    kept = team.database.read_here(job_by_id, first.id)
    assert (kept.state, kept.exit_code) == ("FAILED", 3)
    listed = [row.id for row in team.database.read_here(list_jobs).jobs if row.name == "same"]
    assert listed == [second.id]


def test_a_refused_successor_leaves_the_name_to_its_owner(team: TeamServer) -> None:
    _send(team, "stays", shell_job("mine"))
    first = _ended(team, "stays", "mine")
    assert _send(team, "stays", shell_job("mine", replicas=100_000)).status == 422
    assert _row(team, "stays", "mine").id == first.id


def test_a_live_job_keeps_its_name(team: TeamServer) -> None:
    _send(team, "live", shell_job("busy", "sleep 60"))
    refused = _send(team, "live", shell_job("busy"))
    assert refused.code == (409, "JobIsLive")
    assert _send(team, "live", shell_job("busy"), replace=True).status == 201
    _ended(team, "live", "busy")


def test_a_stopped_job_is_stopping_at_once(team: TeamServer) -> None:
    _send(team, "stopper", shell_job("long", "trap '' TERM; sleep 60"))
    eventually(lambda: _row(team, "stopper", "long").state == "RUNNING", "it to run")
    path = "/regatta/v1/namespaces/user-stopper/jobs/long/stop"
    assert team.ask("POST", path, team.token("stopper")).status == 200
    assert _row(team, "stopper", "long").state in ("STOPPING", "STOPPED")


@pytest.mark.parametrize(
    ("method", "way", "body"),
    [
        ("PUT", "/api/v2/jobs/{0}~run/executionType", {"value": "STOP"}),
        ("PUT", "/api/v1/user/{0}/jobs/run/executionType", {"value": "STOP"}),
        ("DELETE", "/api/v1/jobs/{0}~run", None),
    ],
    ids=["stop", "v1-stop", "delete"],
)
def test_what_is_done_to_an_earlier_run_is_not_done_to_another_that_has_its_name(
    team: TeamServer, request: pytest.FixtureRequest, method: str, way: str, body: Any
) -> None:
    """As after an older copy of the records was put back."""
    user = request.node.callspec.id
    _send(team, user, shell_job("run", "sleep 60"))
    eventually(lambda: _row(team, user, "run").state == "RUNNING", "it to run")
    earlier = update(jobs).where(jobs.c.username == user).values(engine_uid=f"before-{user}")
    team.database.run_here(lambda connection: connection.execute(earlier))

    answer = team.ask(method, way.format(user), team.token(user), body=body)

    assert answer.status in (200, 202), answer.body
    there = team.ask("GET", f"/regatta/v1/namespaces/user-{user}/jobs/run", team.admin_token())
    assert there.json["status"]["phase"] == "Running"
    assert "abort" not in there.json["spec"].get("runPolicy", {})


def test_a_deleted_job_goes_with_its_record_and_its_folder(team: TeamServer) -> None:
    _send(team, "tidy", shell_job("gone", "echo result > out"))
    row = _ended(team, "tidy", "gone")
    (folder,) = _folders(team, row.id)
    assert (folder / "out").read_text() == "result\n"
    path = "/regatta/v1/namespaces/user-tidy/jobs/gone"
    assert team.ask("DELETE", path, team.token("tidy")).status == 200
    assert not _folders(team, row.id)
    assert not [r for r in team.database.read_here(list_jobs).jobs if r.username == "tidy"]


def test_records_go_with_their_folders_when_their_time_is_over(team: TeamServer) -> None:
    _send(team, "past", shell_job("old"))
    row = _ended(team, "past", "old")
    assert _folders(team, row.id)
    team.pass_time(2 * 86_400)
    try:
        asyncio.run(clean(team.team))
    finally:
        team.pass_time(-2 * 86_400)
    assert not _folders(team, row.id)
    assert not [r for r in team.database.read_here(list_jobs).jobs if r.username == "past"]


def test_an_account_without_the_virtual_cluster_is_refused_it(team: TeamServer) -> None:
    config = """
protocolVersion: 2
name: elsewhere
type: job
prerequisites: [{type: dockerimage, name: i, uri: none}]
taskRoles:
  t:
    dockerImage: i
    resourcePerInstance: {cpu: 1, memoryMB: 100, gpu: 0}
    commands: [echo hello]
defaults: {virtualCluster: gpu}
"""
    refused = _send(team, "ann", config)
    assert refused.code == (400, "NoVirtualClusterError")


def test_a_delete_that_was_cut_off_can_be_finished(team: TeamServer) -> None:
    """The engine has let go, and the record is still there."""
    _send(team, "halved", shell_job("half"))
    _ended(team, "halved", "half")
    path = "/regatta/v1/namespaces/user-halved/jobs/half"
    asyncio.run(team.team.engine.delete("user-halved", "half"))
    assert team.ask("GET", path, team.token("halved")).status == 404
    assert team.ask("DELETE", path, team.token("halved")).status == 200
    assert team.ask("DELETE", path, team.token("halved")).status == 404
    assert not [r for r in team.database.read_here(list_jobs).jobs if r.username == "halved"]


@pytest.mark.parametrize("way", ["delete", "stop"])
def test_what_was_asked_beside_a_refused_replacement_is_done_to_the_job_that_keeps_the_name(
    team: TeamServer, tmp_path: Path, way: str
) -> None:
    """The replacement has the name on record while its interpreter is looked at."""
    name, racer = f"race-{way}", team.token("racer")
    assert _send(team, "racer", shell_job(name, "sleep 600")).status == 201
    text = _slow_to_be_refused(tmp_path, name)
    with ThreadPoolExecutor() as both:
        replacing = both.submit(_send, team, "racer", text, replace=True)
        eventually((tmp_path / "asked").exists, "its interpreter being asked")
        path = f"/api/v1/user/racer/jobs/{name}"
        if way == "delete":
            asked = both.submit(team.ask, "DELETE", path, racer)
        else:
            body = {"value": "STOP"}
            asked = both.submit(team.ask, "PUT", f"{path}/executionType", racer, body=body)
        turns = team.team.desk.turns
        eventually(lambda: turns.wanted(("racer", name)) == 2, "both wanting the name")
        (tmp_path / "go").touch()
        assert replacing.result().status == 422, replacing.result().body
        assert asked.result().status == 202, asked.result().body
    if way == "stop":
        _ended(team, "racer", name, "STOPPED")
    else:
        assert team.ask("GET", path, racer).status == 404
        left = team.team.engine
        eventually(lambda: name not in _names(asyncio.run(left.list("user-racer"))), "its end")


def _slow_to_be_refused(folder: Path, name: str) -> str:
    """A job whose interpreter says when it is asked for Paddle, and has none when it may answer."""
    interpreter, program = folder / "python", folder / "train.py"
    waits = f"touch {folder}/asked; until [ -e {folder}/go ]; do sleep 0.05; done; exit 1"
    interpreter.write_text(f"#!/bin/sh\n{waits}\n")
    interpreter.chmod(0o755)
    program.write_text("import paddle\n")
    document = yaml.safe_load(shell_job(name))
    [container] = document["spec"]["worker"]["template"]["spec"]["containers"]
    container["command"] = [str(interpreter), str(program)]
    return yaml.safe_dump(document)


def _names(jobs: list[Job]) -> set[str]:
    return {job.name for job in jobs}
