"""Replicas that fail, vanish or lose their node, and what starts again."""

from __future__ import annotations

import pytest

from tests.kubernetes.operator.builders import a_job
from tests.kubernetes.operator.running import Jobs


def uids(jobs: Jobs, name: str) -> dict[str, str]:
    return {n: pod["metadata"]["uid"] for n, pod in jobs.pods(name).items()}


def test_peers_are_told_the_new_addresses_after_a_restart(jobs: Jobs) -> None:
    """K1: the ConfigMap was never written again, and the peers kept a dead address."""
    jobs.create(a_job("job").with_ps(1).workers(2).policy(backoffLimit=1))
    jobs.wait_for_phase("job", "Running")
    before, first = uids(jobs, "job"), jobs.wait_for_environment("job", 1)
    jobs.ends("job-worker-0", 1)
    status = jobs.wait("job", lambda s: s.get("restarts") == 1, "a counted restart")
    status = jobs.wait_for_phase("job", "Running")
    assert status["attempt"] == 1
    after = uids(jobs, "job")
    assert after.keys() == before.keys()
    assert not set(after.values()) & set(before.values()), "all replicas start again"
    jobs.true_environment("job")
    assert jobs.environment("job", 1) == first, "what the first attempt saw stays on record"
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


def test_a_job_on_a_dead_node_gets_new_pods_elsewhere(jobs: Jobs) -> None:
    """The pod stays Running with a deletionTimestamp for good: only a forced removal frees it."""
    node = jobs.plane.nodes.create_unmanaged(f"dead-{jobs.namespace}", cpu="999")
    try:
        jobs.api.wait_for(
            f"/api/v1/nodes/{node}", lambda n: not n["spec"].get("taints"), what="no taints"
        )
        job = (
            a_job("job")
            .workers(2)
            .pod(
                "worker",
                affinity={
                    "nodeAffinity": {
                        "preferredDuringSchedulingIgnoredDuringExecution": [
                            {
                                "weight": 100,
                                "preference": {
                                    "matchFields": [
                                        {"key": "metadata.name", "operator": "In", "values": [node]}
                                    ]
                                },
                            }
                        ]
                    }
                },
            )
        )
        jobs.create(job)
        pods = jobs.wait_for_pods(
            "job",
            lambda p: len(p) == 2 and all(q["spec"].get("nodeName") for q in p.values()),
            "placed pods",
        )
        stuck = [n for n, p in pods.items() if p["spec"]["nodeName"] == node]
        assert stuck
        jobs.api.patch(f"/api/v1/nodes/{node}", {"spec": {"unschedulable": True}})
        for name in stuck:  # what the taint manager would do five minutes later
            jobs.api.delete(f"{jobs.core}/pods/{name}")
        jobs.wait_for_phase("job", "Running", seconds=90)
        now = jobs.pods("job")
        assert all(p["spec"]["nodeName"] != node for p in now.values())
        assert all(now[n]["metadata"]["uid"] != pods[n]["metadata"]["uid"] for n in stuck)
    finally:
        jobs.api.delete(f"/api/v1/nodes/{node}")
