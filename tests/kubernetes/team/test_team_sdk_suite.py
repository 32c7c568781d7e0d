"""OpenPAI's own client and the suite of its authors, against a team's server before a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from regatta.server.accounts.administration import add_user
from regatta.server.accounts.audit import read_audit
from regatta.server.accounts.passwords import Hashes
from regatta.server.accounts.tokens import Kind, issue
from regatta.server.records.moments import now_millis
from tests.chaos.team_servers import records
from tests.kubernetes.controlplane.plane import ControlPlane
from tests.kubernetes.operator.running import RunningOperator
from tests.kubernetes.team.cluster_team import ClusterTeam, a_cluster_team
from tests.server.accounts.people import CHEAP
from tests.server.openpai.js_sdk import run_suite
from tests.server.records.postgresql import PostgreSQL

#: Its sign-in cases tell an unknown user from a wrong password.
AS_OPENPAI = "  signIn: openpai\n"
CASES = 72
PASSWORD = "correct horse"


@pytest.fixture(params=["sqlite", "postgresql"])
def team(
    request: pytest.FixtureRequest, plane: ControlPlane, operator: RunningOperator, tmp_path: Path
) -> Iterator[ClusterTeam]:
    url = ""
    if request.param == "postgresql":
        postgresql: PostgreSQL = request.getfixturevalue("postgresql")
        url = postgresql.new_database()
    with a_cluster_team(plane, tmp_path, url, AS_OPENPAI) as serving:
        yield serving


def test_the_suite_inside_openpais_own_client_passes_whole(team: ClusterTeam) -> None:
    name = f"pai_admin_{team.server.port}"  # its namespace outlives the server
    with records(team.server.url) as database:
        user = database.run_here(add_user, Hashes(CHEAP), name, PASSWORD, now_millis(), admin=True)
        token = database.run_here(issue, user.id, Kind.SIGN_IN, now_millis()).value

    outcome = run_suite(f"http://127.0.0.1:{team.server.port}", name, PASSWORD, token)

    assert outcome.failed == {}, what_was_answered(team)
    assert (len(outcome.passed), len(outcome.pending)) == (CASES, 0)


def what_was_answered(team: ClusterTeam) -> str:
    """The suite's own words seldom say which request was refused: the audit does."""
    with records(team.server.url) as database:
        entries = database.read_here(read_audit, limit=1000).entries
    return "\n".join([team.server.log, *map(str, entries)])
