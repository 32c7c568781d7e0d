"""Nothing trains before it knows where everybody is, and nothing waits longer than that."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from regatta.engines.kubernetes.objects.annotations import RELEASED
from tests.kubernetes.controlplane.plane import ControlPlane, PlaneOptions, wait_for_controllers
from tests.kubernetes.operator.builders import a_job
from tests.kubernetes.operator.conftest import install_crd
from tests.kubernetes.operator.running import Jobs, RunningOperator


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Nodes on which a pod is held in CreateContainerConfigError until it is touched."""
    options = PlaneOptions(barrier_annotation=RELEASED)
    with ControlPlane(options, tmp_path_factory.mktemp("held")) as plane:
        wait_for_controllers(plane)
        install_crd(plane)
        plane.nodes.create(2)
        with RunningOperator(plane.admin_kubeconfig):
            yield plane


@pytest.fixture
def jobs(held: ControlPlane, request: pytest.FixtureRequest) -> Iterator[Jobs]:
    name = held.create_namespace(f"held-{request.node.name[-40:].strip('_').replace('_', '-')}")
    yield Jobs(held, name)
    held.api.delete(f"/api/v1/namespaces/{name}")


def test_waiting_pods_are_released_when_the_environment_is_there(jobs: Jobs) -> None:
    jobs.create(a_job("job").with_ps(1).workers(2).policy(backoffLimit=1))
    jobs.wait_for_phase("job", "Running")
    for pod in jobs.pods("job").values():
        assert pod["metadata"]["annotations"][RELEASED] == "1"
    assert jobs.environment("job", 1)


def test_the_barrier_works_again_at_a_restart(jobs: Jobs) -> None:
    """A ConfigMap of the job's own name exists by then: new pods started on old addresses."""
    jobs.create(a_job("job").workers(2).policy(backoffLimit=1))
    jobs.wait_for_phase("job", "Running")
    jobs.ends("job-worker-0", 1)
    jobs.wait("job", lambda s: s.get("restarts") == 1, "a counted restart")
    jobs.wait_for_phase("job", "Running")
    jobs.true_environment("job")
    revision = str(jobs.status("job")["revision"])
    told = {p["metadata"]["annotations"][RELEASED] for p in jobs.pods("job").values()}
    assert told == {revision}
    assert int(revision) >= 2
