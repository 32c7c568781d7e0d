"""When a job has reached its goal."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from regatta.api.job import Completion
from regatta.controller.observe import observe
from regatta.controller.policies.completion import fails_at, is_complete, tolerated
from regatta.controller.world import Children
from tests.controller.builders import JobBuilder, Scene, a_job, a_scene

PS = a_job().with_ps(1).with_workers(2)
HETER = a_job().with_ps(1).with_workers(1).with_heter(1)
TASKS = a_job().with_task("a", 2).with_task("b", 1)
FIRST = a_job().with_task("a", 2, Completion(min_succeeded=1)).with_task("b", 1)
HARDY = a_job().with_task("a", 3, Completion(min_failed=2)).with_task("b", 1)
BOTH = (
    a_job().with_task("a", 2, Completion(min_failed=2)).with_task("b", 2, Completion(min_failed=2))
)
SERVERS = a_job().with_ps(2)
ALL = a_job().with_task("a", 2, Completion(min_succeeded=-1))
ANY = a_job().with_task("a", 2, Completion(min_failed=None)).with_task("b", 1)

CASES: dict[str, tuple[JobBuilder, tuple[str, ...], tuple[str, ...], bool]] = {
    "all workers have succeeded; the server runs on": (PS, ("j-worker-0", "j-worker-1"), (), True),
    "one worker still trains": (PS, ("j-worker-0",), (), False),
    "only the server has ended": (PS, ("j-ps-0",), (), False),
    "a worker failed": (PS, ("j-worker-0",), ("j-worker-1",), False),
    "heter trainers count": (HETER, ("j-worker-0",), (), False),
    "worker and heter trainer are done": (HETER, ("j-worker-0", "j-heter-0"), (), True),
    "every task is done": (TASKS, ("j-a-0", "j-a-1", "j-b-0"), (), True),
    "one task is not": (TASKS, ("j-a-0", "j-a-1"), (), False),
    "one success is enough": (FIRST, ("j-a-1",), (), True),
    "another role's success is not": (FIRST, ("j-b-0",), (), False),
    "a failure that is let pass": (HARDY, ("j-a-0", "j-a-1", "j-b-0"), ("j-a-2",), True),
    "more failures than are let pass": (HARDY, ("j-a-0", "j-b-0"), ("j-a-1", "j-a-2"), False),
    "each role has its own failures": (BOTH, ("j-a-0", "j-b-0"), ("j-a-1", "j-b-1"), True),
    "any number of failures": (ANY, ("j-b-0",), ("j-a-0", "j-a-1"), True),
    "another role's failure": (ANY, ("j-a-0", "j-a-1"), ("j-b-0",), False),
    "no number of successes is enough": (ALL, ("j-a-0",), (), False),
}


def ended(builder: JobBuilder, succeeded: tuple[str, ...], failed: tuple[str, ...]) -> Scene:
    scene = a_scene(builder).run().succeed(*succeeded)
    for name in failed:
        scene.fail(name, 1)
    return scene


@pytest.mark.parametrize(("builder", "succeeded", "failed", "complete"), CASES.values(), ids=CASES)
def test_a_job_is_complete_when_its_goal_is_reached(
    builder: JobBuilder, succeeded: tuple[str, ...], failed: tuple[str, ...], complete: bool
) -> None:
    scene = ended(builder, succeeded, failed)
    assert is_complete(scene.job, observe(scene.job, scene.children)) is complete


def test_a_job_of_no_tasks_has_reached_nothing() -> None:
    job = TASKS.obj()
    job = replace(job, spec=replace(job.spec, tasks=()))

    assert not is_complete(job, observe(job, Children()))


def test_a_job_without_pods_has_reached_nothing() -> None:
    for builder in (PS, SERVERS, TASKS):
        scene = a_scene(builder)
        assert not is_complete(scene.job, observe(scene.job, scene.children))


LIMITS: dict[str, tuple[Completion | None, int | None]] = {
    "nothing is said": (None, 1),
    "only of success": (Completion(min_succeeded=1), 1),
    "a number": (Completion(min_failed=3), 3),
    "never": (Completion(min_failed=None), None),
}


@pytest.mark.parametrize(("completion", "limit"), LIMITS.values(), ids=LIMITS)
def test_so_many_failures_of_a_task_fail_the_job(
    completion: Completion | None, limit: int | None
) -> None:
    assert fails_at(completion) == limit


def test_no_failure_of_a_training_job_is_let_pass() -> None:
    scene = ended(PS, (), ("j-worker-0",))
    world = observe(scene.job, scene.children)
    assert tolerated(scene.job, [r for r in world.replicas if r.failed]) == []
