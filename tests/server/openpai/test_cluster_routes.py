"""What OpenPAI's clients are told of virtual clusters and machines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from regatta.server.team.team_settings import TeamSettings
from tests.openpai_configs import hello
from tests.server.openpai.jobs_of_openpai import LOOP, submit, wait_for
from tests.server.team.serving import NO_LIMITS, TeamServer, a_team_server


def test_a_virtual_cluster_tells_what_its_jobs_hold(shared: TeamServer, tmp_path: Path) -> None:
    ann, go = shared.token("ann"), tmp_path / "go"
    before = shared.ask("GET", "/api/v2/virtual-clusters", ann).json["default"]
    submit(shared, ann, hello("holds", LOOP.format(go=go)))
    wait_for(shared, ann, "holds", "RUNNING")
    during = shared.ask("GET", "/api/v1/virtual-clusters/default", ann).json
    assert before["resourcesUsed"]["cpu"] == 0
    assert during["resourcesUsed"] == {"cpu": 1, "vCores": 1, "memory": 128, "gpu": 0, "GPUs": 0}
    assert during["numActiveJobs"] == 1
    assert during["usedCapacity"] == 12.5
    pods = shared.ask("GET", "/api/v2/kubernetes/pods", shared.admin_token()).json
    assert [pod["metadata"]["namespace"] for pod in pods["items"]] == ["user-ann"]
    go.touch()
    wait_for(shared, ann, "holds", "SUCCEEDED")


@pytest.fixture(scope="module")
def with_gold(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TeamServer]:
    settings = TeamSettings(rates=NO_LIMITS, virtual_clusters=("default", "gold", "v-100"))
    with a_team_server(tmp_path_factory.mktemp("team"), settings=settings) as serving:
        yield serving


@pytest.mark.parametrize("version", ["v1", "v2"])
@pytest.mark.parametrize(
    ("method", "path", "code", "said"),
    [
        ("PUT", "new", (501, "NotImplementedError"), "Add its name there"),
        ("PUT", "gold", (501, "NotImplementedError"), "Rename or remove it there"),
        ("PUT", "gold/status", (501, "NotImplementedError"), "remove its name there"),
        ("DELETE", "gold", (501, "NotImplementedError"), "team.virtualClusters"),
        ("DELETE", "v-100", (501, "NotImplementedError"), "Remove its name there"),
        ("PUT", "default", (403, "ForbiddenUserError"), "Update operation to default vc"),
        ("PUT", "default/status", (403, "ForbiddenUserError"), "Update operation to default vc"),
        ("DELETE", "default", (403, "ForbiddenUserError"), "Remove operation to default vc"),
        ("PUT", "a-b", (400, "InvalidParametersError"), "letters, digits and `_`"),
        ("PUT", "a-b/status", (400, "InvalidParametersError"), "'a-b'"),
        ("DELETE", "a.b", (400, "InvalidParametersError"), "'a.b'"),
        ("PUT", "new/status", (404, "NoVirtualClusterError"), "new is not found"),
        ("DELETE", "new", (404, "NoVirtualClusterError"), "new is not found"),
    ],
)
def test_virtual_clusters_stay_as_the_settings_have_them(
    with_gold: TeamServer, version: str, method: str, path: str, code: tuple[int, str], said: str
) -> None:
    asked, body = f"/api/{version}/virtual-clusters/{path}", {"vcCapacity": 10}
    told = with_gold.ask(method, asked, with_gold.admin_token(), body=body)
    assert told.code == code
    assert said in told.json["message"]
    member = with_gold.ask(method, asked, with_gold.token("ann"), body=body)
    assert member.code == (403, "ForbiddenUserError")
    assert "Non-admin" in member.json["message"]


def test_kinds_of_machines_and_nodes(shared: TeamServer) -> None:
    ann = shared.token("ann")
    (sku,) = shared.ask("GET", "/api/v2/cluster/sku-types?vc=default", ann).json.values()
    assert sku == {"cpu": 8, "memory": 16384, "gpu": 0}
    for path in ("cluster/sku-types?vc=none", "virtual-clusters/none/sku-types"):
        assert shared.ask("GET", f"/api/v2/{path}", ann).code == (404, "NoVirtualClusterError")
    assert shared.ask("GET", "/api/v2/virtual-clusters?nodes", ann).json == {
        "localhost": {"gpuUsed": 0, "gpuAvailable": 0, "gpuTotal": 0}
    }
    assert shared.ask("GET", "/api/v2/alerts", ann).json == []
