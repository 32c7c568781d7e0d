"""Names that are taken: by somebody else, or by what an earlier job of that name left."""

from __future__ import annotations

import pytest

from tests.kubernetes.operator.builders import a_job
from tests.kubernetes.operator.running import Document, Jobs

POD = {"containers": [{"name": "other", "image": "registry.local/other:1"}]}


def somebodys_pod(jobs: Jobs, name: str, **labels: str) -> Document:
    created: Document = jobs.api.create(
        f"{jobs.core}/pods", {"metadata": {"name": name, "labels": labels}, "spec": POD}
    )
    return created


def untouched(jobs: Jobs, before: Document) -> bool:
    after = jobs.pod(before["metadata"]["name"])
    return (
        after is not None
        and after["metadata"]["uid"] == before["metadata"]["uid"]
        and after["metadata"].get("labels") == before["metadata"].get("labels")
        and "ownerReferences" not in after["metadata"]
        and "deletionTimestamp" not in after["metadata"]
    )


def test_somebodys_pod_under_our_name_is_told_and_left_alone(jobs: Jobs) -> None:
    """K7: it was taken for the job's own, and the job hung."""
    theirs = somebodys_pod(jobs, "job-worker-1")
    jobs.create(a_job("job").workers(2))
    status = jobs.wait("job", lambda s: s.get("reason") == "ForeignObject", "ForeignObject")
    assert "job-worker-1" in status["message"]
    jobs.wait_for_event("job", "ForeignObject")
    assert untouched(jobs, theirs)
    jobs.api.delete(f"{jobs.core}/pods/job-worker-1")
    status = jobs.wait_for_phase("job", "Running", seconds=90)
    assert not status.get("reason")


def test_somebodys_pod_with_our_label_is_told_and_left_alone(jobs: Jobs) -> None:
    theirs = somebodys_pod(jobs, "job-worker-0", **{"paddle-res-type": "worker"})
    jobs.create(a_job("job").workers(1))
    jobs.wait("job", lambda s: s.get("reason") == "ForeignObject", "ForeignObject")
    assert untouched(jobs, theirs)
    jobs.api.delete(f"{jobs.core}/pods/job-worker-0")
    jobs.wait_for_phase("job", "Running")


@pytest.mark.parametrize("labels", [{}, {"paddle-res-type": "worker"}])
def test_a_pod_of_kubeflows_job_of_our_name_is_told_and_left_alone(
    jobs: Jobs, labels: dict[str, str]
) -> None:
    """It was taken for an earlier job's, and its name asked for again and again."""
    owner = {"apiVersion": "kubeflow.org/v1", "kind": "PaddleJob", "name": "job", "uid": "u-1"}
    metadata = {"name": "job-worker-0", "labels": labels, "ownerReferences": [owner]}
    before = jobs.api.create(f"{jobs.core}/pods", {"metadata": metadata, "spec": POD})
    jobs.create(a_job("job").workers(1))
    jobs.wait("job", lambda s: s.get("reason") == "ForeignObject", "ForeignObject", seconds=30)
    after = jobs.pods("job")["job-worker-0"]["metadata"]
    assert after["uid"] == before["metadata"]["uid"]
    assert after["ownerReferences"] == [owner]
    assert "deletionTimestamp" not in after


def test_somebodys_service_under_our_name_is_told_and_left_alone(jobs: Jobs) -> None:
    """K7."""
    theirs = jobs.api.create(
        f"{jobs.core}/services",
        {"metadata": {"name": "job-worker-0"}, "spec": {"ports": [{"port": 80}]}},
    )
    jobs.create(a_job("job").workers(2).spec(intranet="Service"))
    status = jobs.wait("job", lambda s: s.get("reason") == "NameTaken", "NameTaken")
    assert "Service named job-worker-0" in status["message"]
    jobs.wait_for_event("job", "NameTaken")
    now = jobs.api.get(f"{jobs.core}/services/job-worker-0")
    assert now["metadata"]["resourceVersion"] == theirs["metadata"]["resourceVersion"]
    jobs.api.delete(f"{jobs.core}/services/job-worker-0")
    status = jobs.wait_for_phase("job", "Running")
    jobs.wait("job", lambda s: not s.get("reason"), "no complaint")


def test_what_is_left_of_a_former_job_is_never_anybodys_environment(jobs: Jobs) -> None:
    """K7: the replicas were started with whatever a ConfigMap of that name said."""
    jobs.create(a_job("job").workers(2))
    jobs.wait_for_phase("job", "Running")
    jobs.delete("job", propagationPolicy="Orphan")
    jobs.api.wait_for(f"{jobs.path}/job", lambda seen: seen is None, what="its removal")
    left = jobs.pods("job")
    assert {pod["status"]["phase"] for pod in left.values()} == {"Running"}
    assert not any("deletionTimestamp" in pod["metadata"] for pod in left.values())
    for name in left:
        jobs.api.delete(f"{jobs.core}/pods/{name}")
    jobs.wait_for_pods("job", lambda pods: not pods, "no pods")

    jobs.create(a_job("job").workers(3))
    jobs.wait_for_phase("job", "Running")

    assert jobs.wait_for_environment("job", 1)["PADDLE_TRAINERS_NUM"] == "3"
    for pod in jobs.pods("job").values():
        (source,) = pod["spec"]["containers"][0]["envFrom"]
        named = jobs.api.get(f"{jobs.core}/configmaps/{source['configMapRef']['name']}")
        assert named["data"]["PADDLE_TRAINERS_NUM"] == "3"


def test_a_job_made_again_at_once_is_not_the_old_one(jobs: Jobs) -> None:
    """K6: it adopted the old job's pods and was Completed before it began."""
    for round_number in range(3):
        first = jobs.create(a_job("job").with_ps(1).workers(2).spec(cleanPodPolicy="Never"))
        jobs.wait_for_phase("job", "Running")
        old = {pod["metadata"]["uid"] for pod in jobs.pods("job").values()}
        if round_number:
            jobs.ends("job-worker-0")
            jobs.ends("job-worker-1")
            jobs.wait_for_phase("job", "Completed")
        jobs.delete("job", propagationPolicy="Background")
        second = jobs.create(a_job("job").with_ps(1).workers(2))
        assert second["metadata"]["uid"] != first["metadata"]["uid"]
        status = jobs.wait_for_phase("job", "Running")
        now = jobs.pods("job")
        assert len(now) == 3, (round_number, jobs.get("job"), jobs.events("job"))
        assert not {pod["metadata"]["uid"] for pod in now.values()} & old
        owners = {pod["metadata"]["ownerReferences"][0]["uid"] for pod in now.values()}
        assert owners == {second["metadata"]["uid"]}
        assert status.get("attempt", 0) == 0, "nothing of its own was lost"
        data = jobs.wait_for_environment("job", 1)
        hosts = [pod["status"]["podIP"] for n, pod in now.items() if "worker" in n]
        assert data["PADDLE_TRAINERS"] == ",".join(hosts)
        jobs.delete("job")
        jobs.wait_for_pods("job", lambda pods: not pods, "no pods")


def test_a_job_made_again_waits_for_a_pod_that_takes_long_to_go(jobs: Jobs) -> None:
    """Its name answers 409 "object is being deleted": neither done nor somebody else's."""
    jobs.create(a_job("job").workers(1))
    jobs.wait_for_phase("job", "Running")
    pod = f"{jobs.core}/pods/job-worker-0"
    jobs.api.patch(pod, {"metadata": {"finalizers": ["regatta.test/hold"]}})
    old = jobs.api.get(pod)["metadata"]["uid"]
    jobs.delete("job", propagationPolicy="Background")
    jobs.create(a_job("job").workers(1))
    jobs.api.wait_for(pod, lambda p: "deletionTimestamp" in p["metadata"], what="going")
    jobs.wait("job", lambda s: s.get("phase") == "Pending", "Pending")
    assert jobs.status("job").get("reason", "") == ""
    jobs.api.patch(pod, {"metadata": {"finalizers": None}})
    jobs.wait_for_phase("job", "Running")
    assert jobs.api.get(pod)["metadata"]["uid"] != old
