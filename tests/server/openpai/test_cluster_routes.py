"""What OpenPAI's clients are told of virtual clusters and machines."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.openpai_configs import hello
from tests.server.openpai.jobs_of_openpai import LOOP, submit, wait_for
from tests.server.team.serving import TeamServer


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


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", "/api/v1/virtual-clusters/new"),
        ("PUT", "/api/v2/virtual-clusters/default/status"),
        ("DELETE", "/api/v2/virtual-clusters/default"),
    ],
)
def test_what_means_nothing_here_says_so_to_admins(
    shared: TeamServer, method: str, path: str
) -> None:
    told = shared.ask(method, path, shared.admin_token(), body={"vcCapacity": 10})
    assert told.code == (501, "NotImplementedError")
    assert "team.virtualClusters" in told.json["message"]
    assert shared.ask(method, path, shared.token("ann"), body={}).code == (
        403,
        "ForbiddenUserError",
    )


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
