"""What is remembered of pods that were followed, and how much of it."""

from __future__ import annotations

from regatta.api.job import Job, JobSpec, Metadata, Mode
from regatta.engines.kubernetes.api import models
from regatta.engines.kubernetes.engine.memory.followed import (
    MOST_FOLLOWED,
    MOST_IN_ALL,
    MOST_PODS,
    FollowedPods,
)


def a_job(uid: str) -> Job:
    return Job(metadata=Metadata(name=uid, uid=uid), spec=JobSpec(mode=Mode.SINGLE))


def a_pod(uid: str, phase: str = "Running") -> models.Pod:
    return models.Pod(models.Metadata(name=uid, uid=uid), status=models.PodStatus(phase=phase))


def uids(followed: FollowedPods, job: Job) -> list[str]:
    return [pod.metadata.uid for pod in followed.of(job)]


def test_a_pod_is_remembered_as_it_was_last_seen() -> None:
    followed, job = FollowedPods(), a_job("j")

    followed.note(job.uid, a_pod("p"))
    followed.note(job.uid, a_pod("p", "Succeeded"))

    assert [pod.status.phase for pod in followed.of(job)] == ["Succeeded"]


def test_only_the_jobs_that_were_followed_last_are_remembered() -> None:
    followed = FollowedPods()
    for number in range(MOST_FOLLOWED):
        followed.note(f"j{number}", a_pod(f"p{number}"))
    followed.note("j0", a_pod("p0"))

    followed.note("one more", a_pod("p"))

    assert len(followed) == MOST_FOLLOWED
    assert uids(followed, a_job("j1")) == []
    assert uids(followed, a_job("j0")) == ["p0"]


def test_a_job_that_starts_again_for_ever_is_not_remembered_for_ever() -> None:
    followed, job = FollowedPods(), a_job("j")

    for number in range(MOST_PODS + 5):
        followed.note(job.uid, a_pod(f"p{number}"))

    assert uids(followed, job) == [f"p{number}" for number in range(5, MOST_PODS + 5)]


def test_a_job_that_is_gone_is_forgotten() -> None:
    followed, job = FollowedPods(), a_job("j")
    followed.note(job.uid, a_pod("p"))

    followed.forget(job)

    assert (len(followed), uids(followed, job)) == (0, [])


def test_of_all_jobs_together_so_many_are_remembered() -> None:
    followed = FollowedPods(most_jobs=MOST_IN_ALL)
    for number in range(MOST_IN_ALL + 3):
        followed.note(f"j{number}", a_pod(f"p{number}"))

    assert len(followed) == MOST_IN_ALL
    assert uids(followed, a_job("j2")) == []
    assert uids(followed, a_job("j3")) == ["p3"]
