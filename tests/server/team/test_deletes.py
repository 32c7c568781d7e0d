"""What goes with a job that a member deletes: every run of its name, on record and on disk."""

from __future__ import annotations

import pytest

from tests.doors import eventually, shell_job
from tests.server.team.serving import TeamServer

JOBS = "/regatta/v1/namespaces/user-ann/jobs"


def hand_in(server: TeamServer, token: str, name: str) -> None:
    """A run that leaves a file, and is over."""
    body = {"text": shell_job(name, "echo mine >result")}
    sent = server.ask("POST", "/regatta/v1/jobs", token, body=body)
    assert sent.status == 201, sent.body
    place = f"{JOBS}/{name}"
    eventually(
        lambda: server.ask("GET", place, token).json["status"].get("phase") == "Completed", name
    )


def results(server: TeamServer) -> int:
    """But those whose removal goes on by itself."""
    return len(list(server.work.glob("*/jobs/[!.]*/result")))


@pytest.mark.parametrize("way", [f"{JOBS}/again", "/api/v1/jobs/ann~again"], ids=["ours", "v1"])
def test_earlier_runs_of_the_name_go_with_a_job(server: TeamServer, way: str) -> None:
    ann = server.token("ann")
    for _ in range(3):
        hand_in(server, ann, "again")
    hand_in(server, ann, "other")
    assert results(server) == 4

    assert server.ask("DELETE", way, ann).status in (200, 202)

    assert results(server) == 1
    assert [job["name"] for job in server.ask("GET", "/api/v2/jobs", ann).json] == ["other"]
    assert server.ask("DELETE", way, ann).status == 404


def test_what_is_over_goes_with_its_earlier_runs(server: TeamServer) -> None:
    ann = server.token("ann")
    for name in ("one", "one", "two"):
        hand_in(server, ann, name)

    gone = server.ask("DELETE", JOBS, ann).json

    assert (gone["jobs"], gone["runs"], gone["left"]) == (2, 1, 0)
    assert results(server) == 0
    assert server.ask("GET", "/api/v2/jobs", ann).json == []
