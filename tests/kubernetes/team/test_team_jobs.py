"""OpenPAI's jobs by way of a team's server, on a real node: handed in over HTTP, waiting, running,
read along, stopped, and told of when the cluster has forgotten them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.doors import eventually
from tests.kubernetes.controlplane.access import Access
from tests.kubernetes.team.cluster_team import ClusterMember, ClusterTeam, a_cluster_team
from tests.openpai_configs import ODD, ODD_SAYS, a_task_role, hello, two_roles, version_one

pytestmark = pytest.mark.timeout(900)

#: A kubelet asks a process to end, and the first of a container hears only what it listens for.
ENDS_WHEN_ASKED = "trap 'exit 0' TERM; while :; do sleep 0.1; done"
WAITS = "echo started; until [ -e /tmp/go ]; do sleep 0.1; done\n"


@pytest.fixture
def team(ready_cluster: Access, tmp_path: Path) -> Iterator[ClusterTeam]:
    with a_cluster_team(ready_cluster, tmp_path) as serving:
        yield serving


def all_processors(member: ClusterMember, name: str, image: str) -> str:
    """A job that leaves no room on the node."""
    (node,) = member.cluster.api.items("/api/v1/nodes")
    cpus = int(node["status"]["allocatable"]["cpu"])
    return version_one(name, a_task_role("all", ENDS_WHEN_ASKED, cpuNumber=cpus), image=image)


def test_hello_waits_runs_is_read_along_succeeds_and_outlives_its_job(
    team: ClusterTeam, node_image: str
) -> None:
    ann = team.member()
    assert ann.submit(all_processors(ann, "Full", node_image)).status == 201
    assert ann.status("Full")["state"] in ("WAITING", "RUNNING")
    assert list(ann.listed()) == ["Full"]
    ann.reaches("Full", "RUNNING")

    sent = ann.submit(hello("Hello_World", WAITS + ODD, image=node_image))
    assert sent.status == 201, sent
    assert ann.status("Hello_World")["state"] == "WAITING"
    assert set(ann.listed()) == {"Full", "Hello_World"}
    why = ann.until("Hello_World", lambda s: "cpu" in (s["waitingReason"] or ""), "why it waits")
    assert why["state"] == "WAITING"

    assert ann.stop("Full").status == 202
    assert ann.status("Full")["state"] == "STOPPING"
    assert ann.listed()["Full"] == "STOPPING"
    ann.reaches("Full", "STOPPED")

    running = ann.reaches("Hello_World", "RUNNING")
    assert running["waitingReason"] is None
    eventually(lambda: "started" in ann.log("Hello_World", "default"), "its first line")
    assert ann.status("Hello_World")["state"] == "RUNNING"
    ann.let_go("Hello_World")
    ann.reaches("Hello_World", "SUCCEEDED")
    said = ann.log("Hello_World", "default").splitlines()
    names = {"user": ann.name, "job": "Hello_World"}
    assert said == ["started", *(line.format(**names) for line in ODD_SAYS)]

    ann.kubectl("delete", "pdj", "--all")
    eventually(lambda: ann.log_links("Hello_World", "default").status == 404, "no log")
    assert ann.listed() == {"Full": "STOPPED", "Hello_World": "SUCCEEDED"}
    told = ann.get(f"/v2/jobs/{ann.name}~Hello_World")
    assert told["jobStatus"]["appExitCode"] == 0
    (task,) = told["taskRoles"]["default"]["taskStatuses"]
    assert (task["taskState"], task["containerExitCode"]) == ("SUCCEEDED", 0)
    assert task["containerNodeName"]


def test_two_roles_find_each_other(team: ClusterTeam, node_image: str) -> None:
    ann = team.member()
    # OpenPAI's least is a processor for each, and the node may have no more than two.
    sent = ann.submit(two_roles("Two_Roles", tasks=1, image=node_image))
    assert sent.status == 201, sent

    ann.reaches("Two_Roles", "SUCCEEDED")

    said = ann.log("Two_Roles", "Worker").splitlines()
    assert said == ["found 0", "ps_server has 1", "Worker has 1"]
