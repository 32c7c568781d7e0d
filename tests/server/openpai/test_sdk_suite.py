"""OpenPAI's own client, with the end-to-end suite that its authors wrote for their own server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from regatta.engines.local.scheduling.machine import Machine
from regatta.server.team.team_settings import TeamSettings
from tests.server.openpai.js_sdk import run_suite
from tests.server.records.postgresql import PostgreSQL
from tests.server.team.serving import NO_LIMITS, TeamServer, a_team_server

#: Its jobs ask for 4 CPUs, 8 GiB and a GPU each.
LARGE = Machine(cpus=64, memory=256 << 30, gpus=("0", "1", "2", "3"), pods=110)
#: Its sign-in cases tell an unknown user from a wrong password.
AS_OPENPAI = TeamSettings(rates=NO_LIMITS, tells_unknown_users=True)
CASES, EMPTY = 72, 3
PASSWORD = "correct horse"


@pytest.fixture(params=["sqlite", "postgresql"])
def large(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[TeamServer]:
    url = ""
    if request.param == "postgresql":
        postgresql: PostgreSQL = request.getfixturevalue("postgresql")
        url = postgresql.new_database()
    with a_team_server(tmp_path, url=url, settings=AS_OPENPAI, machine=LARGE) as server:
        yield server


def test_the_suite_inside_openpais_own_client_passes_whole(large: TeamServer) -> None:
    token = large.admin_token("pai_admin")
    outcome = run_suite(large.url, "pai_admin", PASSWORD, token)
    assert outcome.failed == {}
    assert (len(outcome.passed), len(outcome.pending)) == (CASES, 0)
    # Its authors left these empty; `test_contract` asks for what they would have.
    assert sum(case.endswith(" Skip") for case in outcome.passed) == EMPTY
