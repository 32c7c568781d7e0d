"""A secret of a member's on a real node: in the Secret of its job while that runs, in the process,
and in nothing that a team's server keeps, prints or answers; after the run in nothing at all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from regatta.server.accounts.tokens import Kind
from tests.doors import eventually
from tests.kubernetes.controlplane.access import Access
from tests.kubernetes.team.cluster_team import ClusterMember, ClusterTeam, a_cluster_team
from tests.server.team.planted import (
    ROLE,
    SUM,
    answers,
    files_with_it,
    holds,
    planted_config,
    rows_with_it,
)

pytestmark = pytest.mark.timeout(900)

#: Of a namespace: all that jobs leave there.
KINDS = ("pods", "configmaps", "services", "events", "serviceaccounts")


@pytest.fixture
def team(ready_cluster: Access, tmp_path: Path) -> Iterator[ClusterTeam]:
    with a_cluster_team(ready_cluster, tmp_path) as serving:
        yield serving


def secrets(member: ClusterMember) -> list[str]:
    """The names of those that hold it."""
    found = member.cluster.api.items(f"/api/v1/namespaces/{member.namespace}/secrets")
    return [one["metadata"]["name"] for one in found if holds(json.dumps(one))]


def objects_with_it(member: ClusterMember) -> list[str]:
    jobs = f"/apis/batch.paddlepaddle.org/v1/namespaces/{member.namespace}/paddlejobs"
    paths = [jobs, *(f"/api/v1/namespaces/{member.namespace}/{kind}" for kind in KINDS)]
    return [path for path in paths if holds(json.dumps(member.cluster.api.items(path)))]


def is_nowhere_else(team: ClusterTeam, ann: ClusterMember, boss: ClusterMember) -> None:
    def ask(path: str) -> tuple[int, str]:
        said = boss.wire.ask("GET", path)
        return said.status, said.body if isinstance(said.body, str) else json.dumps(said.body)

    told = answers(ask, ann.name, "job", ann.namespace, ann.engine_name("job"))
    assert len([path for path, text in told.items() if "job" in text]) > 15, told.keys()
    assert SUM in str(told)
    assert [path for path, text in told.items() if holds(text)] == []
    assert objects_with_it(ann) == []
    assert files_with_it(team.server.state) == []
    assert rows_with_it(team.server.url) == []
    assert not holds(team.server.log)


def test_it_is_in_the_secret_of_its_job_and_nowhere_after(
    team: ClusterTeam, node_image: str
) -> None:
    ann, boss = team.member(), team.member(admin=True, kind=Kind.SIGN_IN)
    sent = ann.submit_yaml(planted_config("job", "/tmp/go", node_image))
    assert sent.status == 202, sent
    name = ann.engine_name("job")
    ann.reaches("job", "RUNNING")
    eventually(lambda: SUM in ann.log("job", ROLE), "the process to say that it has it")

    assert secrets(ann) == [f"{name}-secrets"]
    is_nowhere_else(team, ann, boss)

    ann.let_go("job")
    ann.reaches("job", "SUCCEEDED")
    eventually(lambda: not secrets(ann), "the Secret to go")
    is_nowhere_else(team, ann, boss)
