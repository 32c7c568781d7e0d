"""What a pod is made of: the user's template, and what the job adds to it."""

from __future__ import annotations

from typing import Any

import pytest

from regatta.api.job import Intranet
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
    ],
)  # fmt: skip
def test_a_replicas_port_is_declared_once_beside_those_of_its_template(
    what: str, theirs: list[dict[str, Any]] | None, added: list[dict[str, Any]]
) -> None:
    pod = the_pod(Intranet.SERVICE, ports=theirs)

    (container,) = pod.manifest["spec"]["containers"]
    assert container["ports"] == [*(theirs or []), *added], what
