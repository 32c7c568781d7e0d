"""A team's server that gives every member a Unix account: what members can do to each other, and to
the server, by way of their jobs and their dry runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from regatta.server.team.isolation import IsolationSettings
from tests.doors import eventually, shell_job
from tests.engines.local.accounts_here import needs_root, place
from tests.server.team.serving import TeamServer, a_team_server

__all__ = ["place"]

pytestmark = needs_root

UIDS = range(241_000, 241_010)


@pytest.fixture
def server(place: Path) -> Iterator[TeamServer]:
    isolation = IsolationSettings("users", work=place / "work", uids=UIDS)
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
    assert list(place.glob("work/*/jobs/*")) == []  # a rehearsal leaves nothing
