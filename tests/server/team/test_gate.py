"""The first thing that a request meets."""

from __future__ import annotations

import http.client
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from regatta.api.errors import RecordsAway
from regatta.server.accounts.rate_limits import Rate
from regatta.server.accounts.users import disable_user
from regatta.server.bounds import connections
from regatta.server.records import team_database
from regatta.server.records.database_url import read_url
from regatta.server.records.waiting import patience
from regatta.server.streams import open_streams
from regatta.server.streams.open_streams import OpenStreams
from regatta.server.team.team_settings import TeamSettings
from tests.doors import eventually, shell_job
from tests.server.accounts.people import PASSWORD
from tests.server.team.serving import NO_LIMITS, TeamServer, a_team_server


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


def test_where_a_request_comes_from_is_not_what_it_says(tmp_path: Path) -> None:
    """Nobody said that there is a proxy, so a header of one is a client's own."""
    settings = TeamSettings(rates=replace(NO_LIMITS, requests=Rate(5, 60.0)))
    with a_team_server(tmp_path, settings=settings) as server:
        statuses = [
            server.ask(
                "GET",
                "/api/v2/info",
                headers={"X-Forwarded-For": f"198.51.100.{i}", "X-Forwarded-Proto": "https"},
            ).status
            for i in range(10)
        ]
    assert statuses == [200] * 5 + [429] * 5


@pytest.mark.parametrize("name", ["Authorization", "Origin", "Cookie", "Host"])
def test_a_header_that_says_who_asks_is_sent_once(server: TeamServer, name: str) -> None:
    ann = server.token("ann")
    value = {"Authorization": f"Bearer {ann}", "Host": urlsplit(server.url).netloc}.get(name, "x")
    with closing(http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=60)) as raw:
        raw.putrequest("GET", "/regatta/v1/jobs", skip_host=name == "Host")
        if name != "Authorization":
            raw.putheader("Authorization", f"Bearer {ann}")
        raw.putheader(name, value)
        raw.putheader(name, value)
        raw.endheaders()
        answer = raw.getresponse()
        assert answer.status == 400
        # A second Host is refused before we see it.
        assert name == "Host" or b"was sent twice" in answer.read()


def test_a_body_of_two_lengths_is_refused_and_the_connection_closed(server: TeamServer) -> None:
    with closing(http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=60)) as raw:
        raw.putrequest("POST", "/regatta/v1/jobs")
        for header in (
            ("Authorization", f"Bearer {server.token('ann')}"),
            ("Content-Length", "5"),
            ("Transfer-Encoding", "chunked"),
        ):
            raw.putheader(*header)
        raw.endheaders(b"0\r\n\r\n")
        answer = raw.getresponse()
        assert (answer.status, answer.headers["Connection"]) == (400, "close")


def test_a_stream_ends_with_what_opened_it(
    server: TeamServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_streams, "LOOK_SECONDS", 0.1)
    ann = {"Authorization": f"Bearer {server.token('ann')}"}
    with closing(http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=60)) as raw:
        raw.request("GET", "/regatta/v1/watch", headers=ann)
        answer = raw.getresponse()
        assert answer.status == 200
        server.add_user("boss", admin=True)
        server.database.run_here(disable_user, "ann", server.now())
        rest = answer.read()  # to its end
    assert b"event: error" in rest
    assert b"UnauthorizedUserError" in rest


def test_an_account_has_only_so_many_streams(
    server: TeamServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server.team.desk, "streams", OpenStreams(1))
    ann = server.token("ann")
    with closing(http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=60)) as raw:
        raw.request("GET", "/regatta/v1/watch", headers={"Authorization": f"Bearer {ann}"})
        assert raw.getresponse().readline()
        refused = server.ask("GET", "/regatta/v1/watch", ann)
        assert (refused.status, refused.headers["Retry-After"]) == (429, "5")
        assert server.ask("GET", "/regatta/v1/jobs", ann).status == 200


def test_a_stranger_is_told_nothing_of_the_servers_places(
    server: TeamServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> None:
        raise RecordsAway("the team's database (/srv/team.db) does not answer")

    monkeypatch.setattr(server.team.database, "run_here", away)
    monkeypatch.setattr(server.team.database, "read_here", away)
    sign_in = {"username": "ann", "password": "secret"}
    said = server.ask("POST", "/api/v2/authn/basic/login", form=sign_in)
    shown = server.ask("GET", "/regatta/v1/jobs", "rgt_0123456789abcdef_" + "x" * 43)
    for answer in (said, shown):
        assert answer.status == 503
        assert b"/srv" not in answer.body


def test_who_only_reads_is_answered_while_nothing_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(team_database, "BUSY_MILLIS", 500)
    with a_team_server(tmp_path) as server:
        token = server.token("ann")  # and its first use is to be written down
        with closing(sqlite3.connect(tmp_path / "team.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            assert server.ask("GET", "/regatta/v1/whoami", token).status == 200
            body = {"username": "ann", "password": PASSWORD}
            refused = server.ask("POST", "/api/v2/authn/basic/login", body=body)
            assert refused.status == 503, refused.body


def test_a_database_that_is_held_is_told_before_a_stranger_is_cut_off() -> None:
    assert team_database.BUSY_MILLIS / 1000 < connections.REQUEST_SECONDS
    assert team_database.POOL_SECONDS < connections.REQUEST_SECONDS
    assert patience.SILENT_SECONDS < connections.REQUEST_SECONDS
    connecting = float(str(read_url("postgresql://localhost/d").url.query["connect_timeout"]))
    # On a connection that rested, and then on a new one to each of two addresses.
    assert patience.SILENT_AFTER_REST + 2 * connecting < connections.REQUEST_SECONDS
