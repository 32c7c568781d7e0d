"""Another number of workers, by `kubectl scale` and by editing."""

from __future__ import annotations

from tests.kubernetes.operator.builders import a_job
from tests.kubernetes.operator.running import Jobs


def scale(jobs: Jobs, name: str, replicas: int) -> None:
    jobs.plane.kubectl("-n", jobs.namespace, "scale", f"pdj/{name}", f"--replicas={replicas}")


def test_kubectl_scale_grows_a_job_and_tells_everybody(jobs: Jobs) -> None:
    """K1: after scaling the count and the list stayed what they had been."""
    jobs.create(a_job("job").workers(2))
    jobs.wait_for_phase("job", "Running")
    scale(jobs, "job", 4)
    jobs.wait("job", lambda s: s.get("shape") == {"worker": 4}, "the larger size")
    assert jobs.true_environment("job")["PADDLE_TRAINERS_NUM"] == "4"
    assert jobs.status("job")["worker"]["replicas"] == 4


def test_kubectl_scale_shrinks_a_job(jobs: Jobs) -> None:
    jobs.create(a_job("job").with_ps(1).workers(3))
    jobs.wait_for_phase("job", "Running")
    scale(jobs, "job", 1)
    jobs.wait("job", lambda s: s.get("shape", {}).get("worker") == 1, "the smaller size")
    jobs.wait_for_pods("job", lambda p: list(p) == ["job-ps-0", "job-worker-0"], "fewer pods")
    assert jobs.true_environment("job")["PADDLE_TRAINERS_NUM"] == "1"


def test_a_size_that_does_not_fit_leaves_the_job_running(jobs: Jobs) -> None:
    job = a_job("job").workers(1).document()
    container = job["spec"]["worker"]["template"]["spec"]["containers"][0]
    container["resources"] = {"requests": {"cpu": "20"}}
    jobs.create(job)
    jobs.wait_for_phase("job", "Running")
    first = jobs.pods("job")["job-worker-0"]["metadata"]["uid"]
    jobs.change("job", worker={"replicas": 12})
    status = jobs.wait("job", lambda s: "to be scaled" in s.get("message", ""), "why it waits")
    assert "Insufficient cpu" in status["message"]
    assert status["phase"] == "Running"
    assert jobs.pods("job")["job-worker-0"]["metadata"]["uid"] == first
