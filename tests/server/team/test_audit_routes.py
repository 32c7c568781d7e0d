"""The audit, for admins."""

from __future__ import annotations

import pytest

from regatta.server.accounts.tokens import Kind
from regatta.server.team.team_app import LARGEST_FROM_NOBODY
from tests.doors import shell_job
from tests.server.team.serving import TeamServer

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
