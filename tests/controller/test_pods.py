"""What a pod is made of: the user's template, and what the job adds to it."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from regatta.api.job import Intranet, TaskPort
from regatta.controller.labels import owned_by
from regatta.controller.plan import NewPod
from regatta.engines.local.replicas.variables import PodFacts, Variables
from tests.controller.builders import a_job, a_scene

OWN_PORT = {"name": "PADDLE_PORT", "value": "1234"}
POD_IP = {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}


def the_pod(intranet: Intranet = Intranet.POD_IP, spec: Any = None, **container: Any) -> NewPod:
    """Of a job with one worker whose template has these fields."""
    template = {"spec": {"containers": [{"name": "main", **container}], **(spec or {})}}
    job = a_job().with_workers(1, template).intranet(intranet)
    (pod,) = a_scene(job, services=True).tick().pods
    return pod


def seen_in(pod: NewPod) -> dict[str, str]:
    """What the local engine, which expands `$(NAME)` as Kubernetes does, starts it with."""
    (container,) = pod.manifest["spec"]["containers"]
    facts = PodFacts(manifest=pod.manifest, uid="u", address="127.64.0.1")
    return Variables(facts, {"j-env-1": {}}, "").build(container)


@pytest.mark.parametrize(
    ("what", "theirs", "endpoint"),
    [
        ("nothing of it", [], "127.64.0.1:20000"),
        ("its address", [POD_IP], "127.64.0.1:20000"),
        ("its port", [OWN_PORT], "127.64.0.1:1234"),
        ("both, between others", [{"name": "A", "value": "1"}, OWN_PORT, POD_IP,
            {"name": "B", "value": "2"}], "127.64.0.1:1234"),
        ("the address, by one of its own", [{"name": "HERE", "value": "198.18.0.9"},
            {"name": "POD_IP", "value": "$(HERE)"}], "198.18.0.9:20000"),
        ("the address twice", [{"name": "POD_IP", "value": "198.18.0.8"}, POD_IP],
         "127.64.0.1:20000"),
        ("the very variable", [POD_IP, {"name": "PADDLE_CURRENT_ENDPOINT", "value": "mine:1"}],
         "mine:1"),
    ],
)  # fmt: skip
def test_a_replicas_own_endpoint_is_complete_whatever_part_of_it_a_template_sets(
    what: str, theirs: list[dict[str, Any]], endpoint: str
) -> None:
    pod = the_pod(env=[*theirs, {"name": "ADVERTISE", "value": "$(PADDLE_CURRENT_ENDPOINT)"}])

    seen = seen_in(pod)

    assert seen["PADDLE_CURRENT_ENDPOINT"] == endpoint, what
    assert seen["ADVERTISE"] == endpoint, "a template's own variables may refer to ours"
    (container,) = pod.manifest["spec"]["containers"]
    written = [v for v in container["env"] if v in theirs]
    assert written == theirs, "theirs stay in their order"


def test_among_peers_with_names_a_replica_is_called_by_its_own_whatever_its_template_says() -> None:
    seen = seen_in(the_pod(Intranet.SERVICE, env=[POD_IP]))

    assert seen["POD_IP"] == "127.64.0.1", "what the user wrote wins"
    assert seen["PADDLE_CURRENT_ENDPOINT"] == "j-worker-0:20000"


def test_every_container_keeps_its_last_lines_unless_its_template_says_otherwise() -> None:
    init = [{"name": "fetch"}, {"name": "own", "terminationMessagePolicy": "File"}]

    made = the_pod(spec={"initContainers": init}).manifest["spec"]

    kept = [c["terminationMessagePolicy"] for c in (*made["initContainers"], *made["containers"])]
    assert kept == ["FallbackToLogsOnError", "File", "FallbackToLogsOnError"]
    assert "envFrom" not in made["initContainers"][0], "it need not wait for the environment"


OURS = {"name": "paddle", "containerPort": 20000}


@pytest.mark.parametrize(
    ("what", "theirs", "added"),
    [
        ("none", None, [OURS]),
        ("another", [{"name": "http", "containerPort": 80}], [OURS]),
        ("the same", [{"containerPort": 20000}], []),
        ("the same, in more words", [{"containerPort": 20000, "protocol": "TCP"}], []),
        ("its number for datagrams", [{"containerPort": 20000, "protocol": "UDP"}], [OURS]),
        ("another of its name", [{"name": "paddle", "containerPort": 2379}],
         [{"containerPort": 20000}]),
        ("its name and number for datagrams", [{**OURS, "protocol": "UDP"}],
         [{"containerPort": 20000}]),
        ("the same, with no protocol", [{"containerPort": 20000, "protocol": ""}], []),
    ],
)  # fmt: skip
def test_a_replicas_port_is_declared_once_beside_those_of_its_template(
    what: str, theirs: list[dict[str, Any]] | None, added: list[dict[str, Any]]
) -> None:
    pod = the_pod(Intranet.SERVICE, ports=theirs)

    (container,) = pod.manifest["spec"]["containers"]
    assert container["ports"] == [*(theirs or []), *added], what


def test_a_pod_is_the_users_template_with_labels_an_owner_and_its_environment() -> None:
    template = {
        "metadata": {
            "labels": {"team": "ads", "batch.paddlepaddle.org/role": "mine"},
            "annotations": {"note": "theirs", "paddle-resource": "mine"},
        },
        "spec": {"containers": [{"name": "main", "image": "x"}, {"name": "log"}]},
    }
    (pod,) = a_scene(a_job().with_workers(1, template), services=True).tick().pods

    manifest = pod.manifest
    env = [container.pop("env") for container in manifest["spec"]["containers"]]
    assert env[0] == env[1]
    assert manifest == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "j-worker-0",
            "namespace": "default",
            "labels": {
                "team": "ads",
                "app.kubernetes.io/name": "paddlejob",
                "app.kubernetes.io/instance": "j",
                "app.kubernetes.io/managed-by": "regatta",
                "batch.paddlepaddle.org/job-name": "j",
                "batch.paddlepaddle.org/role": "worker",
                "batch.paddlepaddle.org/replica-index": "0",
                "batch.paddlepaddle.org/attempt": "0",
                "batch.paddlepaddle.org/environment-revision": "1",
                "paddle-res-name": "j-worker-0",
                "paddle-res-type": "worker",
            },
            "annotations": {
                "kubectl.kubernetes.io/default-container": "main",
                "note": "theirs",
                "paddle-resource": "worker",
            },
            "ownerReferences": owned_by(a_job().with_workers(1).obj()),
        },
        "spec": {
            "restartPolicy": "Never",
            "hostname": "j-worker-0",
            "containers": [
                {
                    "name": name,
                    **image,
                    "envFrom": [{"configMapRef": {"name": "j-env-1-uid-j"}}],
                    "terminationMessagePolicy": "FallbackToLogsOnError",
                }
                for name, image in (("main", {"image": "x"}), ("log", {}))
            ],
        },
    }


THEIRS = {"restartPolicy": "OnFailure", "hostname": "h", "subdomain": "s", "dnsPolicy": "None"}
NETWORKS: dict[str, tuple[Intranet, dict[str, str], dict[str, Any]]] = {
    "by address": (Intranet.POD_IP, {}, {"restartPolicy": "Never", "hostname": "j-worker-0"}),
    "by name": (
        Intranet.SERVICE,
        {},
        {"restartPolicy": "Never", "hostname": "j-worker-0", "subdomain": "j-worker-0"},
    ),
    "on the host's network": (
        Intranet.HOST,
        {},
        {
            "restartPolicy": "Never",
            "hostname": "j-worker-0",
            "hostNetwork": True,
            "dnsPolicy": "ClusterFirstWithHostNet",
        },
    ),
    "by name, as the template wants": (Intranet.SERVICE, THEIRS, THEIRS),
    "on the host's network, as the template wants": (
        Intranet.HOST,
        THEIRS,
        {**THEIRS, "hostNetwork": True},
    ),
}


@pytest.mark.parametrize(("intranet", "theirs", "made"), NETWORKS.values(), ids=NETWORKS)
def test_how_a_pod_is_reached_is_in_its_spec_unless_the_template_says_otherwise(
    intranet: Intranet, theirs: dict[str, str], made: dict[str, Any]
) -> None:
    pod = the_pod(intranet, spec=theirs)

    assert {k: v for k, v in pod.manifest["spec"].items() if k != "containers"} == made
    assert pod.by_name is (intranet is Intranet.SERVICE)


DECLARED = {Intranet.POD_IP: [], Intranet.SERVICE: [OURS], Intranet.HOST: [OURS]}


@pytest.mark.parametrize(("intranet", "ports"), DECLARED.items())
def test_only_the_first_container_declares_the_port_and_only_where_it_matters(
    intranet: Intranet, ports: list[dict[str, Any]]
) -> None:
    template = {"spec": {"containers": [{"name": "main"}, {"name": "log"}]}}
    job = a_job().with_workers(1, template).intranet(intranet)
    (pod,) = a_scene(job, services=True).tick().pods

    main, log = pod.manifest["spec"]["containers"]
    assert main.get("ports", []) == ports
    assert "ports" not in log


@pytest.mark.parametrize("intranet", list(Intranet))
def test_fixed_ports_are_declared_where_they_are_the_nodes(intranet: Intranet) -> None:
    ports = (TaskPort(label="http", begin_at=8080, count=2), TaskPort(label="rpc"))
    template = {"spec": {"containers": [{"name": "main"}, {"name": "log"}]}}
    job = a_job().with_task("t", 1, ports=ports, template=template).intranet(intranet)
    (pod,) = a_scene(job, services=True).tick().pods

    container, beside = pod.manifest["spec"]["containers"]
    assert "ports" not in beside
    declared = {port["containerPort"] for port in container.get("ports", [])}
    assert (declared & {8080, 8081} == {8080, 8081}) is (intranet is Intranet.HOST)


def test_names_take_the_place_of_addresses_that_paddle_cannot_read() -> None:
    scene = a_scene(a_job().with_workers(1), services=True)
    scene.children = replace(scene.children, names_only=True)

    (pod,) = scene.tick().pods

    assert pod.by_name
    assert pod.manifest["spec"]["subdomain"] == "j-worker-0"
    (container,) = pod.manifest["spec"]["containers"]
    assert container["ports"] == [OURS]
    assert {"name": "POD_IP", "value": "j-worker-0"} in container["env"]


def test_a_machine_that_needs_no_names_gives_none() -> None:
    job = a_job().with_workers(1).intranet(Intranet.SERVICE)

    (pod,) = a_scene(job, services=False).tick().pods

    assert not pod.by_name
    assert "subdomain" not in pod.manifest["spec"]


def test_a_users_own_sources_of_variables_come_after_the_environment_and_win() -> None:
    theirs = {"secretRef": {"name": "keys"}}

    (container,) = the_pod(envFrom=[theirs]).manifest["spec"]["containers"]

    assert container["envFrom"] == [{"configMapRef": {"name": "j-env-1-uid-j"}}, theirs]


BARE: dict[str, dict[str, Any]] = {
    "no spec": {},
    "no containers": {"spec": {"containers": None}},
    "a container without a name": {"spec": {"containers": [{"image": "x"}]}},
}


@pytest.mark.parametrize("template", BARE.values(), ids=BARE)
def test_a_template_from_before_the_rules_is_passed_on_for_the_cluster_to_refuse(
    template: dict[str, Any],
) -> None:
    (pod,) = a_scene(a_job().with_workers(1, template), services=True).tick().pods

    assert pod.manifest["metadata"]["annotations"] == {"paddle-resource": "worker"}
