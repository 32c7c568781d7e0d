"""Whom to blame, and how tasks tolerate failures."""

from __future__ import annotations

import pytest

from regatta.api.job import Completion, Phase
from tests.controller.builders import a_job, a_scene

BLAME = {
    "the earliest of two": ({"j-worker-0": (1, 5.0), "j-worker-1": (1, 3.0)}, "j-worker-1"),
    "a code of its own beats an earlier abort": (
        {"j-worker-0": (134, 3.0), "j-worker-1": (1, 5.0)},
        "j-worker-1",
    ),
    "a launcher's 250 is a consequence": (
        {"j-worker-0": (250, 1.0), "j-worker-1": (3, 2.0)},
        "j-worker-1",
    ),
    "out of memory is a cause": (
        {"j-worker-0": (143, 1.0), "j-worker-1": (137, 2.0)},
        "j-worker-1",
    ),
    "only consequences: the earliest": (
        {"j-worker-0": (134, 9.0), "j-worker-1": (139, 8.0)},
        "j-worker-1",
    ),
}


@pytest.mark.parametrize(("exits", "blamed"), BLAME.values(), ids=BLAME)
def test_the_replica_to_blame_is(exits: dict[str, tuple[int, float]], blamed: str) -> None:
    scene = a_scene(a_job().with_workers(2)).run()
    for name, (code, finished) in exits.items():
        scene.now = finished
        scene.fail(name, code)

    scene.tick(20)

    assert scene.job.status.failure is not None
    assert scene.job.status.failure.pod == blamed


def test_an_abort_waits_a_moment_for_its_cause() -> None:
    scene = a_scene(a_job().with_workers(2)).run()
    scene.fail("j-worker-0", 134)

    assert scene.tick().look_again == 2
    assert scene.job.status.phase is Phase.RUNNING

    scene.now += 1
    scene.fail("j-worker-1", 9)
    scene.tick()
    assert scene.job.status.message == "j-worker-1 exited with code 9"


def test_an_abort_without_a_cause_is_blamed_after_the_moment() -> None:
    scene = a_scene(a_job().with_workers(2)).run()
    scene.fail("j-worker-0", 134).tick()

    scene.tick(2)

    assert scene.job.status.message == "j-worker-0 exited with code 134 (signal 6)"


def test_a_replica_we_stopped_is_never_judged() -> None:
    scene = a_scene(a_job().with_workers(2)).run()

    scene.fail("j-worker-0", 143, stopping=True).tick(10)

    assert scene.job.status.phase is Phase.RUNNING


TASKS = {
    "one failed task fails the job by default": (None, 1, 0, Phase.FAILED),
    "a failed task fails the job when all are over too": (None, 1, 2, Phase.FAILED),
    "all over, all failed": (None, 3, 0, Phase.FAILED),
    "fewer than minFailed are let pass": (Completion(min_failed=2), 1, 0, Phase.RUNNING),
    "minFailed reached": (Completion(min_failed=2), 2, 0, Phase.FAILED),
    "minSucceeded reached ends it at once": (Completion(min_succeeded=1), 0, 1, Phase.COMPLETED),
    "all over, failures tolerated": (Completion(min_failed=-1), 2, 1, Phase.COMPLETED),
    "all succeeded": (None, 0, 3, Phase.COMPLETED),
}


@pytest.mark.parametrize(("completion", "failed", "succeeded", "phase"), TASKS.values(), ids=TASKS)
def test_a_job_of_tasks_follows_their_completion_policy(
    completion: Completion | None, failed: int, succeeded: int, phase: Phase
) -> None:
    scene = a_scene(a_job().with_task("t", 3, completion)).run()
    for index in range(failed):
        scene.fail(f"j-t-{index}", 1)
    for index in range(failed, failed + succeeded):
        scene.succeed(f"j-t-{index}")

    scene.tick()

    assert scene.job.status.phase is phase


def test_tasks_that_still_run_are_stopped_when_the_job_completes() -> None:
    scene = a_scene(a_job().with_task("t", 2, Completion(min_succeeded=1))).run()

    scene.succeed("j-t-0").tick()

    assert [pod.name for pod in scene.children.pods if not pod.phase.over] == []
