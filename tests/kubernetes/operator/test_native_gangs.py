"""Gangs with Kubernetes' own PodGroups (alpha in 1.36): `--scheduling=native`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kubernetes.controlplane.plane import ControlPlane, PlaneOptions, wait_for_controllers
from tests.kubernetes.operator.builders import JobBuilder, a_job
from tests.kubernetes.operator.conftest import install_crd
from tests.kubernetes.operator.running import Jobs, RunningOperator


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    options = PlaneOptions(native_gangs=True)
    with ControlPlane(options, tmp_path_factory.mktemp("native")) as plane:
        wait_for_controllers(plane)
        install_crd(plane)
        plane.nodes.create(2, cpu="4")
        with RunningOperator(plane.admin_kubeconfig, scheduling="native"):
            yield plane


@pytest.fixture
def jobs(native: ControlPlane, request: pytest.FixtureRequest) -> Iterator[Jobs]:
    name = native.create_namespace(f"gang-{request.node.name[-40:].strip('_').replace('_', '-')}")
    yield Jobs(native, name)
    native.api.delete(f"/api/v1/namespaces/{name}")


def gang(cpu: str) -> JobBuilder:
    job = a_job("job").workers(3).document()
    container = job["spec"]["worker"]["template"]["spec"]["containers"][0]
    container["resources"] = {"requests": {"cpu": cpu}}
    return JobBuilder(job)


def groups(jobs: Jobs) -> dict[str, int]:
    found = jobs.api.items(
        f"/apis/scheduling.k8s.io/v1alpha2/namespaces/{jobs.namespace}/podgroups"
    )
    return {
        g["metadata"]["name"]: g["spec"]["schedulingPolicy"]["gang"]["minCount"]
        for g in found
        if "deletionTimestamp" not in g["metadata"]
    }


def until_groups(jobs: Jobs, expected: dict[str, int]) -> None:
    jobs.wait("job", lambda s: groups(jobs) == expected, f"groups {expected}")


def test_a_job_starts_as_a_whole_on_a_plain_cluster(jobs: Jobs) -> None:
    jobs.create(gang("1"))
    jobs.wait_for_phase("job", "Running")
    until_groups(jobs, {"job-0": 3})
    pods = jobs.pods("job").values()
    assert {p["spec"]["schedulingGroup"]["podGroupName"] for p in pods} == {"job-0"}
    for name in jobs.pods("job"):
        jobs.ends(name)
    jobs.wait_for_phase("job", "Completed")
    until_groups(jobs, {})


def test_a_job_that_does_not_fit_as_a_whole_starts_nothing(jobs: Jobs) -> None:
    jobs.create(gang("3"))
    jobs.wait_for_pods("job", lambda pods: len(pods) == 3, "pods")
    status = jobs.wait("job", lambda s: s.get("message"), "why it waits")
    assert status["phase"] == "Pending"
    assert not any(pod["spec"].get("nodeName") for pod in jobs.pods("job").values())


def test_every_attempt_has_a_group_of_its_own(jobs: Jobs) -> None:
    jobs.create(gang("1").policy(backoffLimit=1))
    jobs.wait_for_phase("job", "Running")
    jobs.ends("job-worker-0", 1)
    jobs.wait("job", lambda s: s.get("restarts") == 1, "a counted restart")
    jobs.wait_for_phase("job", "Running")
    until_groups(jobs, {"job-1": 3})


def test_scaling_is_another_attempt_with_a_group_of_the_new_size(jobs: Jobs) -> None:
    jobs.create(gang("1"))
    jobs.wait_for_phase("job", "Running")
    jobs.plane.kubectl("-n", jobs.namespace, "scale", "pdj/job", "--replicas=5")
    jobs.wait("job", lambda s: s.get("shape", {}).get("worker") == 5, "the larger size")
    jobs.wait_for_phase("job", "Running")
    until_groups(jobs, {"job-1": 5})


def test_a_job_that_wants_volcano_on_a_cluster_without_it_says_so(jobs: Jobs) -> None:
    jobs.create(gang("1").pod("worker", schedulerName="volcano"))
    status = jobs.wait("job", lambda s: s.get("reason") == "NoGangScheduler", "why it waits")
    assert "Volcano" in status["message"]
