"""A team's server that gives every member a Unix account: what members can do to each other, and to
the server, by way of their jobs and their dry runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from regatta.server.team.isolating.isolation import IsolationSettings
from tests.doors import eventually, shell_job
from tests.engines.local.accounts_here import needs_root, place
from tests.server.team.serving import TeamServer, a_team_server

__all__ = ["place"]

pytestmark = needs_root

UIDS = range(241_000, 241_010)


@pytest.fixture
def server(place: Path) -> Iterator[TeamServer]:
    isolation = IsolationSettings("users", work=place / "work", uids=UIDS, register=place / "uids")
    with a_team_server(place, isolation=isolation) as serving:
        yield serving


def phase_of(server: TeamServer, token: str) -> str:
    (job,) = server.ask("GET", "/regatta/v1/jobs", token).json["items"]
    return str(job["status"].get("phase"))


def hand_in(server: TeamServer, token: str, script: str) -> None:
    sent = server.ask("POST", "/regatta/v1/jobs", token, body={"text": shell_job("job", script)})
    assert sent.status == 201, sent.body


def test_a_job_reads_and_ends_nothing_of_another_members_or_of_the_servers(
    server: TeamServer, place: Path
) -> None:
    told = place / "told"
    told.mkdir()
    told.chmod(0o777)
    ann, bob = server.token("ann"), server.token("bob")
    hand_in(
        server,
        bob,
        f"umask 022; echo mine >secret; pwd >{told}/bob; echo $$$$ >{told}/pid; sleep 600",
    )
    eventually((told / "pid").exists, "bob's job")
    eventually(lambda: (told / "pid").read_text().strip(), "its pid")
    pid = (told / "pid").read_text().strip()
    work = (told / "bob").read_text().strip()
    assert Path(work, "secret").read_text() == "mine\n"
    assert (place / "team.db").stat().st_size
    hand_in(
        server,
        ann,
        f"umask 022; id -u >{told}/ann; {{ cat {work}/secret {place}/team.db; ls {place}/home/*; "
        f"ls {work} {place}/work; cat /proc/{pid}/environ; kill -9 {pid}; }} >{told}/seen "
        f"2>{told}/refused; true",
    )
    eventually(lambda: phase_of(server, ann) == "Completed", "ann's job")
    assert (told / "ann").read_text() == f"{UIDS.start + 1}\n"
    assert (told / "bob").stat().st_uid == UIDS.start
    assert (told / "seen").read_text() == ""
    refused = list(filter(None, (told / "refused").read_text().splitlines()))
    assert len(refused) == 7, refused
    assert all("ermi" in line for line in refused)  # permission denied, not permitted
    assert phase_of(server, bob) == "Running"


def test_a_dry_run_with_a_hostile_python_runs_as_who_sent_it(
    server: TeamServer, place: Path
) -> None:
    told = place / "told"
    told.mkdir()
    told.chmod(0o777)
    python = place / "python"
    python.write_text(f"#!/bin/sh\nid -u >{told}/uid\ncat {place}/team.db >{told}/database\n")
    python.chmod(0o755)
    document = yaml.safe_load(shell_job("job"))
    container = document["spec"]["worker"]["template"]["spec"]["containers"][0]
    container["command"] = [str(python), "-m", "paddle"]
    body = {"text": yaml.safe_dump(document)}
    server.ask("POST", "/regatta/v1/jobs?dryRun=true", server.token("ann"), body=body)
    assert (told / "uid").read_text() == f"{UIDS.start}\n"
    assert (told / "database").read_bytes() == b""
    assert list(place.glob("work/*/jobs/[!.]*")) == []  # a rehearsal leaves nothing


def with_command(*command: str, **more: object) -> str:
    job = yaml.safe_load(shell_job("job"))
    (container,) = job["spec"]["worker"]["template"]["spec"]["containers"]
    container |= {"command": list(command), **more}
    return yaml.safe_dump(job)


def test_a_script_that_is_not_there_is_told_of_in_words_for_members(server: TeamServer) -> None:
    body = {"text": with_command("sh", "train.sh")}
    sent = server.ask("POST", "/regatta/v1/jobs", server.token("ann"), body=body)
    assert sent.status == 422, sent.body
    (problem,) = sent.json["problems"]
    assert "Put the code where the server's machine can read it" in problem["message"]
    assert "--workdir" not in str(sent.json)


def test_a_member_may_leave_the_checks_out_and_nothing_else(server: TeamServer) -> None:
    ann = server.token("ann")
    body = {"text": with_command("sh", "train.sh"), "shell": {"noPreflight": True}}
    assert server.ask("POST", "/regatta/v1/jobs?dryRun=true", ann, body=body).status == 200
    sent = server.ask("POST", "/regatta/v1/jobs", ann, body=body)
    assert sent.status == 201, sent.body
    asked = {**body, "shell": {"directory": "/root"}}
    refused = server.ask("POST", "/regatta/v1/jobs", ann, body=asked)
    assert refused.status == 422, refused.body
    assert "as the container's workingDir" in refused.json["message"]


def test_python_knows_where_it_is_under_its_other_name(server: TeamServer, place: Path) -> None:
    told, programs = place / "told", place / "bin"
    told.mkdir()
    told.chmod(0o777)
    programs.mkdir()
    (programs / "python3").symlink_to("/usr/bin/python3")
    line = f"import sys; print(sys.executable, file=open('{told}/python', 'w'))"
    text = with_command("python", "-c", line, env=[{"name": "PATH", "value": str(programs)}])
    ann = server.token("ann")
    body = {"text": text, "shell": {"noPreflight": True}}
    sent = server.ask("POST", "/regatta/v1/jobs", ann, body=body)
    assert sent.status == 201, sent.body
    (warning,) = sent.json["warnings"]
    assert "`python` is the first python or python3 on the job's PATH" in warning["message"]
    eventually(lambda: phase_of(server, ann) == "Completed", "the job")
    assert (told / "python").read_text() == f"{programs}/python3\n"


def test_a_job_without_python_hears_nothing_of_interpreters(server: TeamServer) -> None:
    body = {"text": shell_job("job", "true")}
    sent = server.ask("POST", "/regatta/v1/jobs", server.token("ann"), body=body)
    assert (sent.status, sent.json["warnings"]) == (201, []), sent.body
