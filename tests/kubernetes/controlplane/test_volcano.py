"""Volcano's scheduler on our control plane: gangs wait and start as one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.kubernetes.controlplane.plane import ControlPlane
from tests.kubernetes.controlplane.volcano import Volcano

GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"
PODS = "/api/v1/namespaces/default/pods"


def a_member(name: str, group: str) -> dict[str, Any]:
    container = {"name": "main", "image": "x", "resources": {"requests": {"cpu": "800m"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": {"scheduling.k8s.io/group-name": group}},
        "spec": {"schedulerName": "volcano", "containers": [container]},
    }


def test_a_gang_that_fits_runs_and_one_that_does_not_waits_as_a_whole(
    start_plane: Callable[..., ControlPlane],
) -> None:
    plane = start_plane()
    plane.nodes.create(3, cpu="1")
    with Volcano(plane):
        for name in ("first", "second"):
            group = {
                "apiVersion": "scheduling.volcano.sh/v1beta1",
                "kind": "PodGroup",
                "metadata": {"name": name},
                "spec": {"minMember": 2},
            }
            plane.api.create(GROUPS, group)
            for index in range(2):
                plane.api.create(PODS, a_member(f"{name}-{index}", name))
            if name == "first":
                for index in range(2):
                    plane.api.wait_for(f"{PODS}/first-{index}", _runs, what="Running")
        plane.api.wait_for(f"{GROUPS}/second", _does_not_fit, what="that it does not fit")
        waiting = [plane.api.get(f"{PODS}/second-{index}") for index in range(2)]
        assert [pod["spec"].get("nodeName") for pod in waiting] == [None, None]


def _runs(pod: Any) -> bool:
    return bool(pod["status"].get("phase") == "Running")


def _does_not_fit(group: Any) -> bool:
    conditions = group.get("status", {}).get("conditions", [])
    return any(c["type"] == "Unschedulable" and c["status"] == "True" for c in conditions)
