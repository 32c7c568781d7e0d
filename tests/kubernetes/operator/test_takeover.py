"""Taking over from the former operator: objects here are what its version 0.3.5 writes.

Each case is set up while no operator runs, as an upgrade would find it.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.kubernetes.operator.builders import a_job
from tests.kubernetes.operator.running import Document, Jobs, RunningOperator

FINALIZER = "finalizers.paddlepaddle.org"


def former_job(jobs: Jobs, status: Document, **spec: Any) -> Document:
    document = a_job("job").with_ps(1).workers(2).spec(**spec).document()
    document["metadata"]["finalizers"] = [FINALIZER]
    created = jobs.create(document)
    replaced: Document = jobs.api.replace(f"{jobs.path}/job/status", {**created, "status": status})
    return replaced


def owner(job: Document) -> Document:
    return {
        "apiVersion": job["apiVersion"],
        "kind": "PaddleJob",
        "name": job["metadata"]["name"],
        "uid": job["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def former_pod(jobs: Jobs, job: Document, role: str, index: int) -> Document:
    name = f"job-{role}-{index}"
    spec = dict(job["spec"][role]["template"]["spec"])
    container = {**spec["containers"][0], "envFrom": [{"configMapRef": {"name": "job"}}]}
    created: Document = jobs.api.create(
        f"{jobs.core}/pods",
        {
            "metadata": {
                "name": name,
                "labels": {"paddle-res-name": name, "paddle-res-type": role},
                "annotations": {"paddle-resource": role},
                "ownerReferences": [owner(job)],
            },
            "spec": {**spec, "containers": [container], "restartPolicy": "Never"},
        },
    )
    return created


def former_pods(jobs: Jobs, job: Document) -> set[str]:
    pods = [former_pod(jobs, job, r, i) for r, i in (("ps", 0), ("worker", 0), ("worker", 1))]
    return {pod["metadata"]["uid"] for pod in pods}


def former_environment(jobs: Jobs, job: Document) -> None:
    labels = {"paddle-res-name": "job"}
    metadata = {"name": "job", "labels": labels, "ownerReferences": [owner(job)]}
    jobs.api.create(f"{jobs.core}/configmaps", {"metadata": metadata, "data": {"A": "1"}})


def role_status(**counts: int) -> Document:
    return {"pending": 0, **counts}


RUNNING = {
    "phase": "Running",
    "mode": "PS",
    "ps": role_status(running=1),
    "worker": role_status(running=2),
    "startTime": "2026-01-01T00:00:00Z",
}


def uids(jobs: Jobs) -> set[str]:
    return {pod["metadata"]["uid"] for pod in jobs.pods("job").values()}


def test_a_running_job_goes_on_with_its_pods_and_is_finished_by_us(left: Jobs) -> None:
    job = former_job(left, RUNNING)
    before = former_pods(left, job)
    former_environment(left, job)
    left.wait_for_pods(
        "job", lambda p: all(q["status"]["phase"] == "Running" for q in p.values()), "running"
    )
    with RunningOperator(left.plane.admin_kubeconfig, namespace=left.namespace):
        status = left.wait("job", lambda s: s["worker"].get("ready") == "2/2", "adopted workers")
        assert status["phase"] == "Running"
        assert uids(left) == before
        assert not left.get("job")["metadata"].get("finalizers")
        left.ends("job-worker-0")
        left.ends("job-worker-1")
        left.wait_for_phase("job", "Completed")
        left.wait_for_pods("job", lambda pods: not pods, "cleaned pods")


def test_a_finished_job_is_never_started_again(left: Jobs) -> None:
    former_job(left, {"phase": "Completed", "mode": "PS", "completionTime": "2026-01-01T00:00:00Z"})
    with RunningOperator(left.plane.admin_kubeconfig, namespace=left.namespace) as operator:
        left.api.wait_for(
            f"{left.path}/job", lambda j: not j["metadata"].get("finalizers"), what="let go"
        )
        left.create({**a_job("next").workers(1).that_succeeds().document()})
        left.wait_for_phase("next", "Completed")
        assert left.status("job")["phase"] == "Completed"
        assert not left.pods("job")
        assert operator.failure is None


@pytest.mark.parametrize("phase", ["Succeed", "Unknown", "Completing"])
def test_a_phase_that_we_do_not_have_stops_nothing(left: Jobs, phase: str) -> None:
    former_job(left, {"phase": phase})
    with RunningOperator(left.plane.admin_kubeconfig, namespace=left.namespace):
        left.api.wait_for(
            f"{left.path}/job", lambda j: not j["metadata"].get("finalizers"), what="let go"
        )
        left.create(a_job("next").workers(1).that_succeeds())
        left.wait_for_phase("next", "Completed")
        if phase == "Succeed":
            assert not left.pods("job"), "what has succeeded is over"
        else:
            left.wait_for_phase("job", "Running")


def test_a_job_stuck_in_deletion_is_let_go(left: Jobs) -> None:
    """K9: after the former operator was gone, its finalizer held deleted jobs for ever."""
    former_job(left, RUNNING)
    left.delete("job")
    assert "deletionTimestamp" in left.get("job")["metadata"]
    with RunningOperator(left.plane.admin_kubeconfig, namespace=left.namespace):
        left.api.wait_for(f"{left.path}/job", lambda seen: seen is None, what="its removal")


def test_pods_that_never_got_an_environment_are_replaced(left: Jobs) -> None:
    """Nobody is left to write the ConfigMap that they wait for."""
    job = former_job(left, {"phase": "Starting", "mode": "PS"})
    left.plane.kwok.pause()  # type: ignore[union-attr]
    try:
        before = former_pods(left, job)
        left.wait_for_pods(
            "job", lambda p: all(q["spec"].get("nodeName") for q in p.values()), "placed"
        )
        with RunningOperator(left.plane.admin_kubeconfig, namespace=left.namespace):
            left.wait_for_pods(
                "job",
                lambda p: all("deletionTimestamp" in q["metadata"] for q in p.values()),
                "their deletion",
            )
            left.plane.kwok.resume()  # type: ignore[union-attr]
            left.wait_for_phase("job", "Running")
            assert not uids(left) & before
            # Its status is written first: kwok's pods run without waiting for it. Pods that get
            # their addresses one after the other have it written again.
            left.wait("job", lambda s: left.environment("job", s["revision"]) is not None, "it")
    finally:
        left.plane.kwok.resume()  # type: ignore[union-attr]


def test_a_lost_pod_of_a_former_job_starts_it_again_as_ours(left: Jobs) -> None:
    job = former_job(left, RUNNING)
    before = former_pods(left, job)
    former_environment(left, job)
    with RunningOperator(left.plane.admin_kubeconfig, namespace=left.namespace):
        left.wait("job", lambda s: s["worker"].get("ready") == "2/2", "adopted workers")
        left.api.delete(f"{left.core}/pods/job-worker-1")
        status = left.wait("job", lambda s: s.get("attempt") == 1, "another attempt")
        status = left.wait_for_phase("job", "Running")
        assert not uids(left) & before
        data = left.wait_for_environment("job", status["revision"])
        assert data["PADDLE_TRAINERS_NUM"] == "2"
