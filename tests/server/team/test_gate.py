"""The first thing that a request meets."""

from __future__ import annotations

from tests.doors import eventually, shell_job
from tests.server.team.serving import TeamServer


def test_health_needs_nobody_and_everything_else_somebody(server: TeamServer) -> None:
    assert server.ask("GET", "/healthz").json["status"] == "ok"
    assert server.ask("GET", "/regatta/v1/jobs").code == (401, "Unauthorized")


def test_a_job_goes_through_with_a_token_and_ends_on_record(server: TeamServer) -> None:
    ann = server.token("ann")
    sent = server.ask("POST", "/regatta/v1/jobs", ann, body={"text": shell_job("first")})
    assert sent.status == 201, sent.body

    def ended() -> bool:
        listed = server.ask("GET", "/regatta/v1/jobs", ann).json["items"]
        return [job["status"].get("phase") for job in listed] == ["Completed"]

    eventually(ended, "the job's end")
    assert server.ask("GET", "/regatta/v1/jobs", server.token("bob")).json["items"] == []
