"""When a job has reached its goal.

A training job is done when every trainer is; servers that still run do not hold it back, because
Paddle's never return by themselves. A job of tasks follows each task's completion policy.
"""

from __future__ import annotations

from regatta.api.job import Completion, Job, Mode
from regatta.controller.observe import TRAINERS, Replica, World


def is_complete(job: Job, world: World) -> bool:
    if job.spec.mode is Mode.CUSTOM:
        return _tasks_are_complete(job, world)
    trainers = [replica for replica in world.replicas if replica.role in TRAINERS]
    return bool(trainers) and all(replica.done for replica in trainers)


def tolerated(job: Job, failed: list[Replica]) -> list[Replica]:
    """Failed tasks that their role's completion policy lets pass."""
    passed: list[Replica] = []
    for task in job.spec.tasks:
        of_task = [replica for replica in failed if replica.role == task.name]
        limit = fails_at(task.completion)
        if limit is None or len(of_task) < limit:
            passed += of_task
    return passed


def fails_at(completion: Completion | None) -> int | None:
    """How many failed tasks of a role fail the job; None if it takes any number."""
    return (completion or Completion()).min_failed


def _tasks_are_complete(job: Job, world: World) -> bool:
    for task in job.spec.tasks:
        needed = task.completion.min_succeeded if task.completion else None
        succeeded = sum(replica.done for replica in world.of(task.name))
        if needed is not None and needed >= 1 and succeeded >= needed:
            return True
    passed = tolerated(job, [replica for replica in world.replicas if replica.failed])
    return bool(world.replicas) and all(r.done or r in passed for r in world.replicas)
