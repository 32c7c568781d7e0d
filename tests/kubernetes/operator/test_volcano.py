"""Gangs, with Volcano's real scheduler."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.kubernetes.controlplane.plane import ControlPlane, wait_for_controllers
from tests.kubernetes.controlplane.volcano import Volcano
from tests.kubernetes.operator.builders import JobBuilder, a_job
from tests.kubernetes.operator.conftest import install_crd
from tests.kubernetes.operator.running import Document, Jobs, RunningOperator

GROUP = "scheduling.volcano.sh/v1beta1"


@pytest.fixture(scope="module")
def volcano(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    with ControlPlane(folder=tmp_path_factory.mktemp("volcano")) as plane:
        wait_for_controllers(plane)
        install_crd(plane)
        plane.nodes.create(2, cpu="4")
        with Volcano(plane), RunningOperator(plane.admin_kubeconfig):
            yield plane


@pytest.fixture
def jobs(volcano: ControlPlane, request: pytest.FixtureRequest) -> Iterator[Jobs]:
    name = volcano.create_namespace(f"gang-{request.node.name[-40:].strip('_').replace('_', '-')}")
    yield Jobs(volcano, name)
    volcano.api.delete(f"/api/v1/namespaces/{name}")


def gang(cpu: str = "1") -> JobBuilder:
    job = a_job("job").with_ps(1).workers(2).pod("worker", schedulerName="volcano").document()
    for role in ("ps", "worker"):
        container = job["spec"][role]["template"]["spec"]["containers"][0]
        container["resources"] = {"requests": {"cpu": cpu}}
    return JobBuilder(job)


def groups(jobs: Jobs) -> str:
    return f"/apis/{GROUP}/namespaces/{jobs.namespace}/podgroups"


def group(jobs: Jobs) -> Document | None:
    found: Document | None = jobs.api.find(f"{groups(jobs)}/job")
    return found


def test_scheduler_name_on_the_worker_alone_makes_the_job_a_gang(jobs: Jobs) -> None:
    jobs.create(gang())
    jobs.wait_for_phase("job", "Running")
    made = group(jobs)
    assert made is not None
    assert made["spec"]["minMember"] == 3
    pods = jobs.pods("job")
    assert {pod["spec"]["schedulerName"] for pod in pods.values()} == {"volcano"}
    annotations = pods["job-ps-0"]["metadata"]["annotations"]
    assert annotations["scheduling.k8s.io/group-name"] == "job"
    jobs.ends("job-worker-0")
    jobs.ends("job-worker-1")
    jobs.wait_for_phase("job", "Completed")
    jobs.api.wait_for(f"{groups(jobs)}/job", lambda seen: seen is None, what="its removal")


def test_a_group_that_the_user_made_is_used_and_never_removed(jobs: Jobs) -> None:
    """K7: the former operator deleted it when the job ended."""
    theirs = jobs.api.create(
        groups(jobs),
        {
            "apiVersion": GROUP,
            "kind": "PodGroup",
            "metadata": {"name": "job"},
            "spec": {"minMember": 2},
        },
    )
    jobs.create(gang())
    jobs.wait_for_phase("job", "Running")
    jobs.ends("job-worker-0")
    jobs.ends("job-worker-1")
    jobs.wait_for_phase("job", "Completed")
    jobs.wait_for_pods("job", lambda pods: not pods, "cleaned pods")
    now = group(jobs)
    assert now is not None
    assert now["metadata"]["uid"] == theirs["metadata"]["uid"]
    assert now["spec"]["minMember"] == 2
    assert "ownerReferences" not in now["metadata"]


def test_no_pod_is_made_before_volcano_lets_the_group_in(jobs: Jobs, volcano: ControlPlane) -> None:
    queue = "/apis/scheduling.volcano.sh/v1beta1/queues"
    volcano.api.create(
        queue,
        {
            "apiVersion": GROUP,
            "kind": "Queue",
            "metadata": {"name": "narrow"},
            "spec": {"weight": 1, "capability": {"cpu": "1"}},
        },
    )
    minimum = {"queue": "narrow", "minResources": {"cpu": "3"}}
    jobs.create(gang().spec(schedulingPolicy=minimum))
    status = jobs.wait("job", lambda s: s.get("reason") == "WaitingForAdmission", "why it waits")
    assert status["phase"] == "Pending"
    assert not jobs.pods("job")
    # A status is written before what it tells of is made.
    made = jobs.api.wait_for(f"{groups(jobs)}/job", lambda g: g is not None, what="the group")
    assert made["spec"]["queue"] == "narrow"
    time.sleep(1)
    assert not jobs.pods("job")
    # What a person does then: ask for less.
    jobs.change("job", worker={"replicas": 1}, schedulingPolicy={"minResources": {"cpu": "500m"}})
    jobs.wait("job", lambda s: s.get("reason") != "WaitingForAdmission", "its admission")
    smaller = (2, {"cpu": "500m"})
    jobs.api.wait_for(
        f"{groups(jobs)}/job",
        lambda g: (g["spec"]["minMember"], g["spec"]["minResources"]) == smaller,
        what="the smaller group",
    )
    jobs.wait_for_pods("job", lambda pods: len(pods) == 2, "pods of the smaller size")
    volcano.api.patch(f"{queue}/narrow", {"spec": {"capability": {"cpu": "8"}}})
    jobs.wait_for_phase("job", "Running")


def test_a_gang_that_does_not_fit_starts_nothing(jobs: Jobs) -> None:
    jobs.create(gang(cpu="3"))  # two nodes of four CPUs hold two such pods, not three
    jobs.wait_for_pods("job", lambda pods: len(pods) == 3, "pods")
    status = jobs.wait("job", lambda s: "unschedulable" in s.get("message", "").lower(), "why")
    assert status["phase"] == "Pending"
    assert not any(pod["spec"].get("nodeName") for pod in jobs.pods("job").values())


def test_the_group_follows_a_scaling(jobs: Jobs) -> None:
    jobs.create(gang())
    jobs.wait_for_phase("job", "Running")
    jobs.plane.kubectl("-n", jobs.namespace, "scale", "pdj/job", "--replicas=3")
    jobs.wait("job", lambda s: s.get("shape", {}).get("worker") == 3, "the larger size")
    jobs.wait_for_phase("job", "Running")
    made = jobs.api.wait_for(
        f"{groups(jobs)}/job", lambda g: g["spec"]["minMember"] == 4, what="minMember 4"
    )
    assert made["spec"]["minMember"] == 4


def test_a_gang_restarts_after_a_failure(jobs: Jobs) -> None:
    """A deleted member leaves the group's phase Unknown: that must not block."""
    jobs.create(gang().policy(backoffLimit=1))
    jobs.wait_for_phase("job", "Running")
    jobs.ends("job-worker-0", 1)
    jobs.wait("job", lambda s: s.get("restarts") == 1, "a counted restart")
    jobs.wait_for_phase("job", "Running")
