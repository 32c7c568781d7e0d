"""A team's server whose engine cannot write, since another program holds its database."""

from __future__ import annotations

import logging
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from regatta.engines.local.home import open_home
from regatta.engines.local.store import database
from tests.doors import shell_job
from tests.server.team.serving import TeamServer, a_team_server

JOBS = "/regatta/v1/jobs"


def _records(server: TeamServer, token: str) -> list[str]:
    return [job["name"] for job in server.ask("GET", "/api/v2/jobs", token).json]


def test_a_submit_is_refused_leaves_nothing_and_is_taken_once_it_can_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(database, "BUSY_TIMEOUT_MS", 50)
    caplog.set_level(logging.WARNING)
    with a_team_server(tmp_path) as server:
        ann, body = server.token("ann"), {"text": shell_job("first"), "key": "once"}
        path = open_home(tmp_path / "home").database
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            refused = server.ask("POST", JOBS, ann, body=body)
            assert refused.code == (503, "DatabaseLocked")
            assert f"the job database {path} locked" in refused.json["message"]
            assert _records(server, ann) == []
            other.execute("ROLLBACK")
        assert server.ask("POST", JOBS, ann, body=body).status == 201
        assert _records(server, ann) == ["first"]
    assert not [record for record in caplog.records if record.exc_info]
