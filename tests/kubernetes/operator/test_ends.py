"""What is left of a job when it is over: clean-pod policies, failure, abort, deadline, TTL."""

from __future__ import annotations

import pytest

from tests.kubernetes.operator.builders import a_job
from tests.kubernetes.operator.running import Jobs, RunningOperator


@pytest.mark.parametrize(
    ("policy", "code", "cleaned"),
    [
        ("Always", 0, True),
        ("Always", 3, True),
        ("OnCompletion", 0, True),
        ("OnCompletion", 3, False),
        ("OnFailure", 0, False),
        ("OnFailure", 3, True),
        ("Never", 0, False),
        ("Never", 3, False),
    ],
)
def test_the_clean_pod_policy_decides_about_the_pods(
    jobs: Jobs, policy: str, code: int, cleaned: bool
) -> None:
    jobs.create(a_job("job").with_ps(1).workers(1).spec(cleanPodPolicy=policy))
    jobs.wait_for_phase("job", "Running")
    jobs.ends("job-worker-0", code)
    status = jobs.wait_for_phase("job", "Failed" if code else "Completed")
    if cleaned:
        jobs.wait_for_pods("job", lambda pods: not pods, "cleaned pods")
    else:
        jobs.wait_for_event("job", status["reason"])
        assert list(jobs.pods("job")) == ["job-ps-0", "job-worker-0"]
    counted = "failed" if code else "succeeded"
    assert jobs.status("job")["worker"][counted] == 1, "a cleaned job still shows what it was"


def test_a_failed_job_stops_its_healthy_pods_and_keeps_them_for_their_logs(jobs: Jobs) -> None:
    """K14: they ran on, holding their GPUs."""
    jobs.create(a_job("job").with_ps(1).workers(2))
    jobs.wait_for_phase("job", "Running")
    jobs.ends("job-worker-1", 3, message="Traceback: no such file")
    status = jobs.wait_for_phase("job", "Failed")
    assert "job-worker-1 exited with code 3" in status["message"]
    assert status["failure"]["message"] == "Traceback: no such file"
    pods = jobs.wait_for_pods(
        "job",
        lambda pods: all(p["status"]["phase"] == "Failed" for p in pods.values()),
        "stopped pods",
    )
    assert list(pods) == ["job-ps-0", "job-worker-0", "job-worker-1"]
    assert pods["job-ps-0"]["status"]["reason"] == "DeadlineExceeded"


def test_an_init_container_that_fails_is_named_with_its_exit_code_and_last_words(
    jobs: Jobs,
) -> None:
    waits = {"kwok.regatta.test/waiting": "PodInitializing"}
    init = [{"name": "fetch", "image": "registry.local/fetch:1"}]
    jobs.create(a_job("job").workers(1, **waits).pod("worker", initContainers=init))
    jobs.wait_for_phase("job", "Starting")
    # As far as kwok plays it; what the kubelet would say next is said below.
    pods = jobs.wait_for_pods(
        "job", lambda p: bool(p["job-worker-0"]["status"].get("podIP")), "its address"
    )
    (made,) = pods["job-worker-0"]["spec"]["initContainers"]
    assert made["terminationMessagePolicy"] == "FallbackToLogsOnError"
    ended = {"exitCode": 3, "reason": "Error", "message": "no such bucket"}
    fetch = {"name": "fetch", "image": "", "imageID": "", "ready": False, "restartCount": 0}
    failed = {
        "phase": "Failed",
        "initContainerStatuses": [fetch | {"state": {"terminated": ended}}],
    }
    jobs.api.patch(f"{jobs.core}/pods/job-worker-0/status", {"status": failed})
    status = jobs.wait_for_phase("job", "Failed")
    assert status["message"] == "job-worker-0 exited with code 3: init container fetch failed"
    assert status["failure"]["message"] == "init container fetch failed: no such bucket"


def test_a_failure_is_seen_although_another_pod_still_waits(jobs: Jobs) -> None:
    """K12: a pending replica could mask a failed one."""
    waits = {"kwok.regatta.test/waiting": "ImagePullBackOff"}
    jobs.create(a_job("job").with_ps(1, **waits).workers(1))
    jobs.wait_for_pods(
        "job",
        lambda p: len(p) == 2 and p["job-worker-0"]["status"]["phase"] == "Running",
        "a running worker",
    )
    jobs.ends("job-worker-0", 1)
    jobs.wait_for_phase("job", "Failed")


def test_a_deleted_pod_of_a_finished_job_is_not_made_again(jobs: Jobs) -> None:
    """K14: it was."""
    jobs.create(a_job("job").workers(1).spec(cleanPodPolicy="Never").that_succeeds())
    jobs.wait_for_phase("job", "Completed")
    jobs.api.delete(f"{jobs.core}/pods/job-worker-0")
    jobs.wait_for_pods("job", lambda pods: not pods, "the deletion")
    # Something for the operator to look at, and proof that it has looked.
    jobs.create(a_job("next").workers(1).that_succeeds())
    jobs.wait_for_phase("next", "Completed")
    assert not jobs.pods("job")
    assert jobs.status("job")["phase"] == "Completed"


def test_an_aborted_job_stops_and_says_so(jobs: Jobs) -> None:
    jobs.create(a_job("job").with_ps(1).workers(1))
    jobs.wait_for_phase("job", "Running")
    jobs.change("job", runPolicy={"abort": True})
    status = jobs.wait_for_phase("job", "Aborted")
    assert status["message"] == "stopped on request"
    assert all(p["status"]["phase"] == "Failed" for p in jobs.pods("job").values())


def test_a_job_ends_at_its_deadline(jobs: Jobs) -> None:
    jobs.create(a_job("job").workers(1).policy(activeDeadlineSeconds=1))
    status = jobs.wait_for_phase("job", "Failed")
    assert status["reason"] == "DeadlineExceeded"


def test_a_job_that_no_progress_can_be_heard_of_is_not_called_hung(jobs: Jobs) -> None:
    jobs.create(a_job("job").workers(1).policy(hangTimeoutSeconds=1))
    jobs.create(a_job("later").workers(1).policy(activeDeadlineSeconds=4))
    jobs.wait_for_phase("job", "Running")
    jobs.wait_for_phase("later", "Failed")
    assert jobs.status("job")["phase"] == "Running"


def test_what_nobody_reads_any_more_is_removed_while_the_job_lives(jobs: Jobs) -> None:
    jobs.create(a_job("job").workers(3).spec(intranet="Service"))
    jobs.wait_for_phase("job", "Running")
    jobs.change("job", worker={"replicas": 1})
    jobs.wait("job", lambda s: s.get("worker", {}).get("ready") == "1/1", "its new size")
    ours = "?labelSelector=batch.paddlepaddle.org/job-name%3Djob"
    for kind in ("services", "configmaps"):
        jobs.api.wait_for(
            f"{jobs.core}/{kind}{ours}", lambda seen: len(seen["items"]) == 1, what=f"one of {kind}"
        )


def test_a_finished_job_goes_when_its_time_to_live_is_over(jobs: Jobs) -> None:
    jobs.create(a_job("job").workers(1).policy(ttlSecondsAfterFinished=1).that_succeeds())
    jobs.api.wait_for(f"{jobs.path}/job", lambda seen: seen is None, what="its removal")


def test_a_suspended_job_has_no_pods_and_goes_on_when_resumed(jobs: Jobs) -> None:
    jobs.create(a_job("job").workers(2))
    jobs.wait_for_phase("job", "Running")
    jobs.change("job", runPolicy={"suspend": True})
    status = jobs.wait_for_phase("job", "Suspended")
    assert "startTime" not in status
    jobs.wait_for_pods("job", lambda pods: not pods, "no pods")
    jobs.change("job", runPolicy={"suspend": False})
    jobs.true_environment("job")


def test_a_job_deleted_in_the_foreground_makes_no_new_pods(jobs: Jobs) -> None:
    """K8: pods were made again while the job was being deleted."""
    jobs.create(a_job("job").with_ps(1).workers(2))
    jobs.wait_for_phase("job", "Running")
    first = {pod["metadata"]["uid"] for pod in jobs.pods("job").values()}
    jobs.delete("job", propagationPolicy="Foreground")
    seen: set[str] = set()

    def gone(found: object) -> bool:
        seen.update(pod["metadata"]["uid"] for pod in jobs.pods("job").values())
        return found is None

    jobs.api.wait_for(f"{jobs.path}/job", gone, what="its removal")
    assert seen <= first


def test_a_deleted_job_goes_although_no_operator_helps(left: Jobs) -> None:
    """K9: a finalizer that did nothing kept jobs for ever once the operator was gone."""
    with RunningOperator(left.plane.admin_kubeconfig, namespace=left.namespace):
        left.create(a_job("job").workers(2).spec(intranet="Service"))
        left.wait_for_phase("job", "Running")
    left.delete("job")
    left.api.wait_for(f"{left.path}/job", lambda seen: seen is None, what="its removal")
    ours = "?labelSelector=batch.paddlepaddle.org/job-name%3Djob"
    for kind in ("pods", "services", "configmaps"):
        path = f"{left.core}/{kind}{ours}"
        left.api.wait_for(path, lambda seen: not seen["items"], what=f"no {kind}")
