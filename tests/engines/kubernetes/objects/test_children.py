"""Whose pods are whose, and where they are reached."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from regatta.api.load import validate_document
from regatta.controller.plan import Instant
from regatta.controller.reconcile import reconcile
from regatta.controller.world import PodPhase
from regatta.engines.kubernetes.api import models
from regatta.engines.kubernetes.objects.children import Found, children
from regatta.engines.kubernetes.objects.hostports import ports_of
from regatta.engines.kubernetes.operator.peers import with_waiting
from regatta.engines.kubernetes.operator.reconciler import wall_clock

JOB_LABELS = {"paddle-res-type": "worker"}
A_JOB = {"apiVersion": "batch.paddlepaddle.org/v1", "kind": "PaddleJob", "name": "job"}
OURS = {**A_JOB, "uid": "uid-1", "controller": True}


def a_job(**spec: Any) -> Any:
    template = {"spec": {"containers": [{"name": "paddle", "image": "x"}]}}
    document = {
        "apiVersion": "batch.paddlepaddle.org/v1",
        "kind": "PaddleJob",
        "metadata": {"name": "job", "namespace": "team"},
        "spec": {"worker": {"replicas": 2, "template": template}, **spec},
    }
    job = validate_document(document).job
    return replace(job, metadata=replace(job.metadata, uid="uid-1"))


def a_pod(
    name: str, labels: dict[str, str], containers: tuple[str, ...] = ("paddle",), **status: Any
) -> models.Pod:
    metadata = {"name": name, "uid": f"uid-of-{name}", "labels": JOB_LABELS | labels}
    document = {
        "metadata": {**metadata, "ownerReferences": [OURS]},
        "spec": {
            "nodeName": "node-1",
            "restartPolicy": "Never",
            "containers": [{"name": name} for name in containers],
        },
        "status": {"phase": "Running", **status},
    }
    return msgspec.convert(document, models.Pod)


PLACE = {
    "batch.paddlepaddle.org/role": "worker",
    "batch.paddlepaddle.org/replica-index": "1",
    "batch.paddlepaddle.org/attempt": "2",
    "batch.paddlepaddle.org/environment-revision": "3",
}


def test_a_pods_place_is_on_its_labels() -> None:
    (pod,) = children(a_job(), Found(pods=[a_pod("job-worker-1", PLACE, podIP="198.18.0.9")])).pods
    assert (pod.role, pod.index, pod.attempt, pod.revision) == ("worker", 1, 2, 3)
    assert pod.host == "198.18.0.9"


@pytest.mark.parametrize("former", [False, True])
def test_a_replicas_result_is_that_of_the_first_container_of_its_roles_template(
    former: bool,
) -> None:
    ended = {"name": "paddle", "state": {"terminated": {"exitCode": 3}}}
    statuses = [{"name": "a-proxy", "state": {"running": {}}}, ended]
    labels, containers = {} if former else PLACE, ("a-proxy", "paddle")
    live = a_pod("job-worker-1", labels, containers, containerStatuses=statuses)
    (pod,) = children(a_job(), Found(pods=[live])).pods
    assert pod.phase is PodPhase.FAILED
    assert pod.exit is not None
    assert pod.exit.code == 3


def test_a_name_is_given_out_only_when_the_cluster_can_resolve_it() -> None:
    pod = a_pod("job-worker-1", PLACE, podIP="198.18.0.9")
    job = a_job(intranet="Service")
    assert children(job, Found(pods=[pod])).pods[0].host is None
    listed = Found(pods=[pod], listed=frozenset({pod.metadata.uid}))
    assert children(job, listed).pods[0].host == "job-worker-1"


@pytest.mark.parametrize(
    ("what", "owner", "foreign"),
    [
        ("nobody's", None, True),
        ("a ReplicaSet's", {**A_JOB, "apiVersion": "apps/v1", "kind": "ReplicaSet"}, True),
        ("another job's", {**A_JOB, "name": "other"}, True),
        ("a job's of Kubeflow", {**A_JOB, "apiVersion": "kubeflow.org/v1"}, True),
        ("an earlier job's of this name", A_JOB, False),
        ("one's of another version", {**A_JOB, "apiVersion": "batch.paddlepaddle.org/v2"}, False),
    ],
)
def test_a_pod_in_the_way_is_foreign_unless_an_earlier_job_of_this_name_left_it(
    what: str, owner: dict[str, str] | None, foreign: bool
) -> None:
    owners = [] if owner is None else [owner | {"uid": "uid-7"}]
    metadata = {"name": "job-worker-0", "uid": "u", "ownerReferences": owners}
    (pod,) = children(a_job(), Found(others=[msgspec.convert(metadata, models.Metadata)])).pods
    assert pod.foreign is foreign, what
    assert pod.deleting is not foreign


@pytest.mark.parametrize(("environment", "attempt"), [(True, 0), (False, -1)])
def test_a_former_operators_waiting_pod_is_kept_only_if_it_can_start(
    environment: bool, attempt: int
) -> None:
    pod = a_pod("job-worker-1", {}, phase="Pending")
    seen = children(a_job(), Found(pods=[pod], former_environment=environment))
    assert (seen.pods[0].role, seen.pods[0].index, seen.pods[0].attempt) == ("worker", 1, attempt)
    assert seen.environments == (frozenset({1}) if environment else frozenset())


def test_host_ports_stay_below_those_that_the_kernel_picks() -> None:
    job = a_job(intranet="Host")
    for number in range(2000):
        uid = msgspec.structs.replace(job.metadata, uid=str(number))
        ports = ports_of(msgspec.structs.replace(job, metadata=uid))
        assert 20_000 <= ports.base <= 29_900
        assert ports.of(5, 31) + 20 < 32_768
        assert ports.of(0, 1) == ports.base + 20


@pytest.mark.parametrize(("intranet", "expected"), [("Service", 1), ("PodIP", 0), ("Host", 0)])
def test_an_init_container_waits_where_there_are_names_to_wait_for(
    intranet: str, expected: int
) -> None:
    """K19: its memory request was a hundredth of a byte, and it had no limits."""
    job, wall = a_job(intranet=intranet), wall_clock()
    seen = children(job, Found())
    pod = reconcile(job, seen, Instant(wall, wall.timestamp())).pods[0]
    made = with_waiting(job, pod, "registry.local/busybox:1")
    found = made["spec"].get("initContainers", [])
    assert len(found) == expected
    for container in found:
        assert container["command"][-2:] == ["job-worker-0", "job-worker-1"]
        assert container["resources"]["requests"].keys() == container["resources"]["limits"].keys()
    assert with_waiting(job, pod, "") == pod.manifest


def test_a_pod_is_not_taken_for_stuck_by_a_clock_that_is_ahead() -> None:
    asked = datetime(2026, 1, 1, tzinfo=UTC)
    going = a_pod("job-worker-1", PLACE)
    metadata = replace(
        going.metadata,
        deletion_timestamp=asked + timedelta(seconds=30),
        deletion_grace_period_seconds=30,
    )
    going = replace(going, metadata=metadata)
    ahead = asked + timedelta(seconds=90)

    (seen,) = children(a_job(), Found(pods=[going], leaving={metadata.uid: ahead})).pods
    assert seen.gone_by == ahead + timedelta(seconds=30)

    behind = asked - timedelta(seconds=90)
    (seen,) = children(a_job(), Found(pods=[going], leaving={metadata.uid: behind})).pods
    assert seen.gone_by == asked + timedelta(seconds=30)
