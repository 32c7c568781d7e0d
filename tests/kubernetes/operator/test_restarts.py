"""Replicas that fail, vanish or lose their node, and what starts again."""

from __future__ import annotations

import pytest

from tests.kubernetes.conftest import StartPlane
from tests.kubernetes.operator.builders import a_job
from tests.kubernetes.operator.conftest import install_crd
from tests.kubernetes.operator.running import Jobs, RunningOperator


def uids(jobs: Jobs, name: str) -> dict[str, str]:
    return {n: pod["metadata"]["uid"] for n, pod in jobs.pods(name).items()}


def test_peers_are_told_the_new_addresses_after_a_restart(jobs: Jobs) -> None:
    """K1: the ConfigMap was never written again, and the peers kept a dead address."""
    jobs.create(a_job("job").with_ps(1).workers(2).policy(backoffLimit=1))
    jobs.wait_for_phase("job", "Running")
    before = uids(jobs, "job")
    jobs.ends("job-worker-0", 1)
    status = jobs.wait("job", lambda s: s.get("restarts") == 1, "a counted restart")
    status = jobs.wait_for_phase("job", "Running")
    assert status["attempt"] == 1
    after = uids(jobs, "job")
    assert after.keys() == before.keys()
    assert not set(after.values()) & set(before.values()), "all replicas start again"
    jobs.true_environment("job")
    jobs.wait_until_environment_is_gone("job", 1)  # what nobody reads any more goes
    jobs.ends("job-worker-1", 7)
    status = jobs.wait_for_phase("job", "Failed")
    assert "attempt 2 of 2" in status["message"]


@pytest.mark.parametrize(("scope", "same"), [("Replica", 3), ("Role", 1), ("Job", 0)])
def test_the_restart_scope_says_who_starts_again(jobs: Jobs, scope: str, same: int) -> None:
    jobs.create(
        a_job("job")
        .with_ps(1)
        .workers(3)
        .spec(intranet="Service", withGloo=0)
        .policy(backoffLimit=1, restartScope=scope)
    )
    jobs.wait_for_phase("job", "Running")
    before = uids(jobs, "job")
    jobs.ends("job-worker-2", 1)
    jobs.wait("job", lambda s: s.get("restarts") == 1, "a counted restart")
    jobs.wait_for_phase("job", "Running")
    after = uids(jobs, "job")
    assert len(after) == 4
    assert sum(after[name] == before[name] for name in after) == same
    assert after["job-worker-2"] != before["job-worker-2"]


def test_a_deleted_pod_restarts_the_job_without_counting(jobs: Jobs) -> None:
    jobs.create(a_job("job").workers(2))
    jobs.wait_for_phase("job", "Running")
    jobs.api.delete(f"{jobs.core}/pods/job-worker-1")
    jobs.wait("job", lambda s: s.get("attempt") == 1, "another attempt")
    status = jobs.wait_for_phase("job", "Running")
    assert status.get("restarts", 0) == 0
    assert jobs.true_environment("job")["PADDLE_TRAINERS"].count(",") == 1


def test_an_evicted_pod_restarts_the_job_without_counting(jobs: Jobs) -> None:
    jobs.create(a_job("job").workers(1))
    jobs.wait_for_phase("job", "Running")
    jobs.api.patch(
        f"{jobs.core}/pods/job-worker-0/status",
        {"status": {"phase": "Failed", "reason": "Evicted", "message": "The node was low on disk"}},
    )
    jobs.wait("job", lambda s: s.get("attempt") == 1, "another attempt")
    status = jobs.wait_for_phase("job", "Running")
    assert status.get("restarts", 0) == 0


def test_a_succeeded_replica_whose_pod_is_drained_does_not_run_again(jobs: Jobs) -> None:
    jobs.create(a_job("job").workers(2))
    jobs.wait_for_phase("job", "Running")
    jobs.ends("job-worker-0")
    jobs.wait("job", lambda s: s["worker"].get("done") == [0], "worker 0 done")
    jobs.api.delete(f"{jobs.core}/pods/job-worker-0")
    jobs.wait_for_pods("job", lambda pods: len(pods) == 1, "the drain")
    jobs.ends("job-worker-1")
    status = jobs.wait_for_phase("job", "Completed")
    assert status.get("attempt", 0) == 0


def test_a_container_killed_for_memory_is_told_by_its_reason(jobs: Jobs) -> None:
    jobs.create(a_job("job").workers(1))
    jobs.wait_for_phase("job", "Running")
    jobs.ends("job-worker-0", 137, reason="OOMKilled")
    status = jobs.wait_for_phase("job", "Failed")
    assert "OOMKilled" in status["message"]
    assert status["failure"]["exitCode"] == 137


def test_a_job_on_a_dead_node_gets_new_pods_elsewhere(start_plane: StartPlane) -> None:
    """The pod stays Running with a deletionTimestamp for good: only a forced removal frees it."""
    plane = start_plane(
        controller_manager_args=("--node-monitor-grace-period=15s", "--node-monitor-period=1s"),
        kwok_args=("--node-lease-duration-seconds=8",),
    )
    install_crd(plane)
    jobs = Jobs(plane, plane.create_namespace("team"))
    unreachable = {
        "key": "node.kubernetes.io/unreachable",
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": 1,  # five minutes if nobody says so
    }
    job = a_job("job").workers(2).pod("worker", tolerations=[unreachable])
    with RunningOperator(plane.admin_kubeconfig):
        node = plane.nodes.create_unmanaged("dying")
        with plane.nodes.kept_alive(node):
            jobs.create(job)
            before = jobs.wait_for_pods(
                "job",
                lambda pods: sum("nodeName" in p["spec"] for p in pods.values()) == 2,
                "placed pods",
            )
            for number, name in enumerate(before, start=1):  # what its kubelet would say
                address = f"198.18.250.{number}"
                running = {
                    "phase": "Running",
                    "podIP": address,
                    "podIPs": [{"ip": address}],
                    "containerStatuses": [
                        {
                            "name": "paddle",
                            "ready": True,
                            "restartCount": 0,
                            "image": "x",
                            "imageID": "x",
                            "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
                        }
                    ],
                }
                jobs.api.patch(f"{jobs.core}/pods/{name}/status", {"status": running})
            jobs.wait_for_phase("job", "Running")
            plane.nodes.create(2)
        status = jobs.wait("job", lambda s: s.get("attempt") == 1, "another attempt", seconds=120)
        assert status.get("restarts", 0) == 0, "a lost node is nobody's failure"
        jobs.wait_for_pods(
            "job", lambda p: "deletionTimestamp" in p["job-worker-0"]["metadata"], "its eviction"
        )
        stuck = jobs.pods("job")["job-worker-0"]
        assert stuck["metadata"]["uid"] == before["job-worker-0"]["metadata"]["uid"]
        assert stuck["metadata"]["deletionTimestamp"], "its node will never let it go"
        jobs.wait_for_phase("job", "Running", seconds=120)
        assert all(p["spec"]["nodeName"] != node for p in jobs.pods("job").values())
