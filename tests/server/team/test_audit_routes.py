"""The audit, for admins."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from regatta.server.accounts.audit import read_audit
from regatta.server.accounts.rate_limits import Rate
from regatta.server.accounts.tokens import Kind
from regatta.server.records.team_database import Database
from regatta.server.team.team_app import LARGEST_FROM_NOBODY
from regatta.server.team.team_settings import TeamSettings
from tests.doors import shell_job
from tests.server.team.serving import NO_LIMITS, TeamServer, a_team_server

AUDIT = "/regatta/v1/audit"


def test_admins_read_who_did_what_a_page_at_a_time(server: TeamServer) -> None:
    admin = server.admin_token()
    ann = server.token("ann")
    for number in range(3):
        server.ask("POST", "/api/v2/groups", ann, body={"groupname": f"g{number}"})
    server.ask("POST", "/regatta/v1/jobs", ann, body={"text": shell_job("first")})
    server.audited(4)

    page = server.ask("GET", f"{AUDIT}?who=ann&limit=2", admin).json
    assert [(e["what"], e["status"]) for e in page["items"]] == [
        ("POST /regatta/v1/jobs", 201),
        ("POST /api/v2/groups", 403),
    ]
    assert page["items"][1]["result"] == "ForbiddenUserError"
    assert page["items"][0]["address"] == "127.0.0.1"
    rest = server.ask("GET", f"{AUDIT}?who=ann&limit=2&before={page['before']}", admin).json
    assert [e["status"] for e in rest["items"]] == [403, 403]
    assert rest["before"] is None


def test_nobody_else_reads_it(shared: TeamServer) -> None:
    shared.admin_token()
    for token in (shared.token("curious"), shared.token("boss", Kind.APPLICATION)):
        assert shared.ask("GET", AUDIT, token).code == (403, "NotAllowed")


@pytest.mark.parametrize("query", ["limit=0", "limit=1001", "before=x", f"before={2**63}"])
def test_a_page_that_cannot_be_is_refused(shared: TeamServer, query: str) -> None:
    assert shared.ask("GET", f"{AUDIT}?{query}", shared.admin_token()).code == (400, "BadRequest")


def test_it_says_which_job_and_what_was_only_a_dry_run(server: TeamServer) -> None:
    ann, boss = server.token("ann"), server.admin_token()
    body = {"text": shell_job("first", "sleep 600")}
    assert server.ask("POST", "/regatta/v1/jobs?dryRun=true", ann, body=body).status == 200
    assert server.ask("POST", "/regatta/v1/jobs", ann, body=body).status == 201
    job = "/regatta/v1/namespaces/user-ann/jobs/first"
    assert server.ask("POST", f"{job}/suspend", ann).status == 200
    assert server.ask("POST", f"{job}/stop", boss).status == 200
    assert server.ask("DELETE", job, boss).status == 200
    told = [(entry.who, entry.what, entry.job) for entry in reversed(server.audited(5))]
    assert told == [
        ("ann", "POST /regatta/v1/jobs?dryRun=true", "ann~first"),
        ("ann", "POST /regatta/v1/jobs", "ann~first"),
        ("ann", f"POST {job}/suspend", "ann~first"),
        ("boss", f"POST {job}/stop", "ann~first"),
        ("boss", f"DELETE {job}", "ann~first"),
    ]


def test_it_has_the_code_that_the_client_got(server: TeamServer) -> None:
    ann = server.token("ann")
    job = "/regatta/v1/namespaces/user-ann/jobs/first"
    sent = server.ask("POST", "/regatta/v1/jobs", ann, body={"text": shell_job("first")})
    assert sent.status == 201, sent.body
    asked = [
        ("POST", f"{job}/resume", ann, None),
        ("POST", f"{job[:-5]}other/stop", ann, None),
        ("PUT", "/api/v2/jobs/ann~other/executionType", ann, {"value": "STOP"}),
        ("POST", "/regatta/v1/jobs", ann, {"text": "kind: Nothing"}),
        ("POST", "/regatta/v1/jobs", ann, {"txet": ""}),
        ("POST", "/regatta/v1/nowhere", ann, None),
        ("PUT", "/api/v2/info", ann, None),
        ("POST", "/regatta/v1/jobs", None, None),
        ("POST", "/api/v2/jobs", None, None),
        ("POST", "/regatta/v1/session", None, {"username": "x" * LARGEST_FROM_NOBODY}),
    ]
    got = [server.ask(method, path, who, body=body) for method, path, who, body in asked]
    codes = [answer.code for answer in got]
    assert codes[:3] == [(409, "NotPossible"), (404, "JobNotFound"), (404, "NoJobError")]
    assert [(entry.status, entry.result) for entry in reversed(server.audited(11))][1:] == codes


@pytest.mark.parametrize(
    "asks",
    [
        ("POST", "/api/v2/jobs", {}, 401),
        ("GET", "/healthz", {"Host": "evil.example"}, 403),
        ("POST", "/api/v2/jobs", {"Content-Length": "2", "Transfer-Encoding": "chunked"}, 400),
    ],
    ids=["nobody", "another's name", "two lengths"],
)
def test_who_asks_too_often_writes_nothing_more(
    tmp_path: Path, asks: tuple[str, str, dict[str, str], int]
) -> None:
    method, path, headers, status = asks
    settings = TeamSettings(rates=replace(NO_LIMITS, requests=Rate(3, 3600.0)))
    with a_team_server(tmp_path, settings=settings) as server:
        got = [server.ask(method, path, text=b"{}", headers=headers).status for _ in range(10)]
        assert got == [status] * 3 + [429] * 7
    # The server has left, so that every note is written.
    with closing(Database(f"sqlite:///{tmp_path}/team.db")) as database:
        entries = database.read_here(read_audit, limit=100).entries
        assert [entry.status for entry in entries] == [status] * 3


def test_a_change_that_met_a_mistake_of_ours_is_in_it(
    server: TeamServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = server.token("ann")
    body = {"text": shell_job("first", "sleep 600")}
    assert server.ask("POST", "/regatta/v1/jobs", ann, body=body).status == 201

    async def broken(*_: object) -> None:
        raise RuntimeError("a mistake")

    monkeypatch.setattr(server.team.engine, "delete", broken)
    gone = server.ask("DELETE", "/regatta/v1/namespaces/user-ann/jobs/first", ann)
    theirs = server.ask("DELETE", "/api/v1/user/ann/jobs/first", ann)
    assert [gone.code, theirs.code] == [(500, "InternalError"), (500, "UnknownError")]
    second, first, _ = server.audited(3)
    assert [(first.status, first.result), (second.status, second.result)] == [
        gone.code,
        theirs.code,
    ]
    assert (first.who, first.job, second.job) == ("ann", "ann~first", "ann~first")
