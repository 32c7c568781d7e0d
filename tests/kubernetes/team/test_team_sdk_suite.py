"""OpenPAI's own client and the suite of its authors, against a team's server before a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from regatta.server.accounts.administration import add_user
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
AS_OPENPAI = """
team:
  signIn: openpai
  rates: {requests: "off", lists: "off", submits: "off", signInAddress: "off", signInName: "off"}
"""
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
    plane.kubectl("delete", "namespace", "user-pai-admin", "--ignore-not-found")


def test_the_suite_inside_openpais_own_client_passes_whole(team: ClusterTeam) -> None:
    with records(team.server.url) as database:
        user = database.run_here(
            add_user, Hashes(CHEAP), "pai_admin", PASSWORD, now_millis(), admin=True
        )
        token = database.run_here(issue, user.id, Kind.SIGN_IN, now_millis()).value

    outcome = run_suite(f"http://127.0.0.1:{team.server.port}", "pai_admin", PASSWORD, token)

    assert outcome.failed == {}, team.server.log
    assert (len(outcome.passed), len(outcome.pending)) == (CASES, 0)
