"""The control plane itself: it starts and stops cleanly, and its nodes do as tests tell them."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import pytest

from tests.kubernetes.controlplane.api import Refused
from tests.kubernetes.controlplane.kubeconfig import User
from tests.kubernetes.controlplane.kwok import EXIT_CODE, WAITING, exits
from tests.kubernetes.controlplane.plane import ControlPlane, PlaneOptions
from tests.kubernetes.controlplane.processes import free_port

BARE = {"controller_manager": False, "scheduler": False, "kwok": False}


def a_pod(name: str, annotations: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": annotations or {}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "x"}], **spec},
    }


def in_phase(*phases: str) -> Callable[[Any], bool]:
    return lambda pod: pod is not None and pod["status"].get("phase") in phases


def terminated(pod: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = pod["status"]["containerStatuses"][0]["state"]["terminated"]
    return found


def test_a_plane_starts_and_stops_twice_and_leaves_no_listener_and_no_folder() -> None:
    for _ in range(2):
        with ControlPlane(PlaneOptions(**BARE)) as plane:
            assert plane.api.get("/version")["gitVersion"] == "v1.36.3"
            parts = [plane.etcd, plane.apiserver]
        assert not any(part.alive for part in parts)
        assert not plane.folder.exists()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", plane.port))


@pytest.mark.parametrize("taken", ["etcd's clients", "etcd's peers", "the API server"])
def test_a_plane_whose_port_was_taken_in_between_starts_on_another(
    monkeypatch: pytest.MonkeyPatch, taken: str
) -> None:
    with socket.socket() as somebody:
        somebody.bind(("127.0.0.1", 0))
        ports = [free_port() for _ in range(3)]
        ports[["etcd's clients", "etcd's peers", "the API server"].index(taken)] = (
            somebody.getsockname()[1]
        )
        monkeypatch.setattr(
            "tests.kubernetes.controlplane.plane.free_port",
            lambda: ports.pop(0) if ports else free_port(),
        )
        with ControlPlane(PlaneOptions(**BARE)) as plane:
            assert plane.api.get("/readyz") == "ok"


def test_the_api_server_comes_back_on_its_port_with_its_data(
    start_plane: Callable[..., ControlPlane],
) -> None:
    plane = start_plane(**BARE)
    plane.create_namespace("kept")
    before = plane.url
    plane.restart_apiserver(crash=True)
    assert plane.url == before
    assert plane.api.get("/api/v1/namespaces/kept")["metadata"]["name"] == "kept"


def test_a_paused_api_server_holds_its_connections_and_answers_when_resumed(
    start_plane: Callable[..., ControlPlane],
) -> None:
    plane = start_plane(**BARE)
    plane.apiserver.pause()
    with socket.create_connection(("127.0.0.1", plane.port), timeout=5) as connection:
        connection.settimeout(0.3)
        connection.sendall(b"\x16\x03\x01")
        with pytest.raises(TimeoutError):
            connection.recv(1)
    plane.apiserver.resume()
    assert plane.api.get("/readyz") == "ok"


def test_a_user_without_rights_is_refused_by_name(
    start_plane: Callable[..., ControlPlane],
) -> None:
    plane = start_plane(**BARE, users=(User("visitor", ("guests",)),))
    with pytest.raises(Refused, match='User \\\\"visitor\\\\" cannot list') as refusal:
        plane.api_as("visitor").get("/api/v1/pods")
    assert refusal.value.status == 403
    refused = plane.kubectl("get", "pods", user="visitor", check=False)
    assert "forbidden" in refused.stderr.lower()


def test_kubectl_applies_what_it_is_given(plane: ControlPlane, namespace: str) -> None:
    manifest = '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}'
    said = plane.kubectl("apply", "-n", namespace, "-f", "-", input=manifest)
    assert said.stdout == "configmap/x created\n"


def test_a_pod_on_a_kwok_node_runs_with_an_address_until_it_is_deleted(
    plane: ControlPlane, namespace: str
) -> None:
    pods = f"/api/v1/namespaces/{namespace}/pods"
    for name in ("one", "two"):
        plane.api.create(pods, a_pod(name))
    seen = [
        plane.api.wait_for(f"{pods}/{name}", in_phase("Running"), what="Running")
        for name in ("one", "two")
    ]
    addresses = {pod["status"]["podIP"] for pod in seen}
    assert len(addresses) == 2
    assert all(address.startswith("198.18.") for address in addresses)
    plane.api.delete(f"{pods}/one")
    plane.api.wait_for(f"{pods}/one", lambda pod: pod is None, what="its end")


@pytest.mark.parametrize(
    ("annotations", "phase", "expected"),
    [
        pytest.param(exits(0), "Succeeded", (0, "Completed", None), id="code 0 succeeds"),
        pytest.param(exits(3), "Failed", (3, "Error", None), id="another code fails"),
        pytest.param(
            exits(137, reason="OOMKilled", message="too much"),
            "Failed",
            (137, "OOMKilled", "too much"),
            id="with the reason and message it is given",
        ),
        pytest.param(exits(0, after="1s"), "Succeeded", (0, "Completed", None), id="after a while"),
    ],
)
def test_a_pod_on_a_kwok_node_ends_as_its_annotations_say(
    plane: ControlPlane,
    namespace: str,
    annotations: dict[str, str],
    phase: str,
    expected: tuple[int, str, str | None],
) -> None:
    pods = f"/api/v1/namespaces/{namespace}/pods"
    plane.api.create(pods, a_pod("x", annotations))
    pod = plane.api.wait_for(f"{pods}/x", in_phase("Succeeded", "Failed"), what="its end")
    ended = terminated(pod)
    assert pod["status"]["phase"] == phase
    assert (ended["exitCode"], ended["reason"], ended.get("message")) == expected


def test_a_running_pod_ends_when_the_annotation_is_patched_on(
    plane: ControlPlane, namespace: str
) -> None:
    path = f"/api/v1/namespaces/{namespace}/pods/x"
    plane.api.create(path.rpartition("/")[0], a_pod("x"))
    plane.api.wait_for(path, in_phase("Running"), what="Running")
    plane.api.patch(path, {"metadata": {"annotations": {EXIT_CODE: "7"}}})
    pod = plane.api.wait_for(path, in_phase("Failed"), what="Failed")
    assert terminated(pod)["exitCode"] == 7


def test_an_active_deadline_of_one_second_ends_a_pod_and_keeps_its_record(
    plane: ControlPlane, namespace: str
) -> None:
    path = f"/api/v1/namespaces/{namespace}/pods/x"
    plane.api.create(path.rpartition("/")[0], a_pod("x"))
    plane.api.wait_for(path, in_phase("Running"), what="Running")
    plane.api.patch(path, {"spec": {"activeDeadlineSeconds": 1}})
    pod = plane.api.wait_for(path, in_phase("Failed"), what="Failed")
    assert pod["status"]["reason"] == "DeadlineExceeded"


def test_a_pod_told_to_wait_is_pending_with_that_reason_until_it_is_let_go(
    plane: ControlPlane, namespace: str
) -> None:
    path = f"/api/v1/namespaces/{namespace}/pods/x"
    plane.api.create(path.rpartition("/")[0], a_pod("x", {WAITING: "ImagePullBackOff"}))
    waiting = plane.api.wait_for(
        path, lambda pod: "containerStatuses" in pod["status"], what="a container's state"
    )
    assert waiting["status"]["phase"] == "Pending"
    state = waiting["status"]["containerStatuses"][0]["state"]
    assert state["waiting"]["reason"] == "ImagePullBackOff"
    plane.api.patch(path, {"metadata": {"annotations": {WAITING: None}}})
    running = plane.api.wait_for(path, in_phase("Running"), what="Running")
    assert running["status"]["podIP"] == waiting["status"]["podIP"]


def test_with_a_barrier_a_pod_that_names_a_config_map_runs_once_it_is_touched(
    start_plane: Callable[..., ControlPlane],
) -> None:
    plane = start_plane(kwok_nodes=1, barrier_annotation="example.org/touched")
    pods = "/api/v1/namespaces/default/pods"
    container = {"name": "main", "image": "x", "envFrom": [{"configMapRef": {"name": "env"}}]}
    plane.api.create(pods, a_pod("held", containers=[container]))
    plane.api.create(pods, a_pod("free"))
    plane.api.wait_for(f"{pods}/free", in_phase("Running"), what="Running")
    held = plane.api.wait_for(
        f"{pods}/held", lambda pod: "containerStatuses" in pod["status"], what="a state"
    )
    state = held["status"]["containerStatuses"][0]["state"]
    assert state["waiting"]["reason"] == "CreateContainerConfigError"
    plane.api.patch(f"{pods}/held", {"metadata": {"annotations": {"example.org/touched": "1"}}})
    plane.api.wait_for(f"{pods}/held", in_phase("Running"), what="Running")


def test_a_pod_on_a_node_that_nothing_manages_stays_terminating(
    plane: ControlPlane, namespace: str
) -> None:
    pods = f"/api/v1/namespaces/{namespace}/pods"
    node = plane.nodes.create_unmanaged(f"dead-{namespace}")
    plane.api.create(pods, a_pod("x", nodeName=node))
    plane.api.delete(f"{pods}/x")
    plane.api.create(pods, a_pod("witness"))
    plane.api.wait_for(f"{pods}/witness", in_phase("Running"), what="Running")
    assert "deletionTimestamp" in plane.api.get(f"{pods}/x")["metadata"]
    plane.api.delete(f"/api/v1/nodes/{node}")


def test_a_gang_that_does_not_fit_waits_as_a_whole_under_native_gang_scheduling(
    start_plane: Callable[..., ControlPlane],
) -> None:
    plane = start_plane(native_gangs=True)
    plane.nodes.create(1, cpu="1")
    group = {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "pair"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}},
    }
    groups = "/apis/scheduling.k8s.io/v1alpha2/namespaces/default/podgroups"
    plane.api.create(groups, group)
    container = {"name": "main", "image": "x", "resources": {"requests": {"cpu": "800m"}}}
    member = {"containers": [container], "schedulingGroup": {"podGroupName": "pair"}}
    pods = "/api/v1/namespaces/default/pods"
    for name in ("a", "b"):
        plane.api.create(pods, a_pod(name, **member))
    plane.api.wait_for(f"{groups}/pair", _says_unschedulable, what="that it does not fit")
    assert [pod["spec"].get("nodeName") for pod in plane.api.items(pods)] == [None, None]


def _says_unschedulable(group: Any) -> bool:
    conditions = (group or {}).get("status", {}).get("conditions", [])
    return any(c["type"] == "PodGroupScheduled" and c["status"] == "False" for c in conditions)
