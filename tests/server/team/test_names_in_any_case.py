"""An account has one name, and whoever asks for what it did may write that in any case."""

from __future__ import annotations

import pytest

from tests.openpai_configs import hello
from tests.server.openpai.jobs_of_openpai import submit
from tests.server.team.serving import TeamServer

AUDIT = "/regatta/v1/audit"
ANY_CASE = ("Bob", "bob", "BOB")


@pytest.fixture
def bobs(server: TeamServer) -> TeamServer:
    return with_jobs(server)


def with_jobs(server: TeamServer) -> TeamServer:
    """A job named `long` is Bob's, one named `other` is Ann's."""
    submit(server, server.token("Bob"), hello("long", "sleep 600"))
    submit(server, server.token("ann"), hello("other", "sleep 600"))
    return server


def test_jobs_are_found_by_their_owners_name(on_both: TeamServer) -> None:
    bobs = with_jobs(on_both)
    admin = bobs.admin_token()
    for name in ANY_CASE:
        for path in (
            f"/api/v2/jobs?username={name}",
            f"/api/v2/jobs?username=nobody-else,{name}",
            f"/api/v1/jobs?username={name}",
            f"/api/v1/user/{name}/jobs",
            f"/api/v2/user/{name}/jobs",
        ):
            listed = bobs.ask("GET", path, admin).json
            assert [(job["username"], job["name"]) for job in listed] == [("Bob", "long")], path
        for path in (
            f"/api/v2/jobs/{name}~long",
            f"/api/v2/jobs/{name}~long/config",
            f"/api/v1/jobs/{name}~long",
            f"/api/v1/user/{name}/jobs/long",
        ):
            assert bobs.ask("GET", path, admin).status == 200, path
    assert bobs.ask("GET", "/api/v2/jobs/bob~LONG", admin).code == (404, "NoJobError")
    assert bobs.ask("GET", "/api/v2/jobs?username=bo", admin).json == []


def test_what_one_may_not_see_is_not_there_in_any_case(bobs: TeamServer) -> None:
    ann = bobs.token("ann")
    for name in ANY_CASE:
        assert bobs.ask("GET", f"/api/v2/jobs?username={name}", ann).json == []
        refused = bobs.ask("GET", f"/api/v2/jobs/{name}~long", ann)
        assert refused.code == (404, "NoJobError")
        assert refused.json["message"] == f"Job {name}~long is not found."


def test_one_submits_and_stops_by_ones_own_name_in_any_case(bobs: TeamServer) -> None:
    bob, config = bobs.token("bob"), hello("second", "sleep 600")
    made = bobs.ask("POST", "/api/v2/user/bob/jobs", bob, text=config)
    assert made.status == 201, made.body
    stopped = bobs.ask("PUT", "/api/v2/jobs/bob~second/executionType", bob, body={"value": "STOP"})
    assert stopped.status == 202, stopped.body
    changed = {"data": {"username": "bob", "email": "bob@example.org"}, "patch": True}
    assert bobs.ask("PUT", "/api/v2/users/me", bob, body=changed).status == 201


def test_the_audit_is_found_by_name_and_by_job(bobs: TeamServer) -> None:
    admin, bob = bobs.admin_token(), bobs.token("bob")
    stop = {"value": "STOP"}
    assert bobs.ask("PUT", "/api/v2/jobs/bob~long/executionType", bob, body=stop).status == 202
    bobs.audited(3)
    for name in ANY_CASE:
        by_name = bobs.ask("GET", f"{AUDIT}?who={name}", admin).json["items"]
        by_job = bobs.ask("GET", f"{AUDIT}?job={name}~long", admin).json["items"]
        for found in (by_name, by_job):
            told = [(one["who"], one["job"], one["status"]) for one in found]
            assert told == [("Bob", "Bob~long", 202), ("Bob", "Bob~long", 202)], name
    assert bobs.ask("GET", f"{AUDIT}?who=bo", admin).json["items"] == []


def test_a_name_that_nobody_can_have_finds_nothing(on_both: TeamServer) -> None:
    admin = on_both.admin_token()
    assert on_both.ask("GET", f"{AUDIT}?who=%00&job=%00~x", admin).json["items"] == []
    assert on_both.ask("GET", "/api/v2/jobs?username=%00", admin).json == []
    assert on_both.ask("GET", "/api/v2/jobs/%00~x", admin).code == (404, "NoJobError")
