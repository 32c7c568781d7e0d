"""The largest jobs: a look at ten times the replicas is ten times the work, not a hundred."""

from __future__ import annotations

import time

from msgspec.structs import replace

from regatta.api.job import Phase
from regatta.controller.reconcile import reconcile
from regatta.controller.world import PodPhase
from tests.controller.builders import Scene, a_job, a_scene, at


def a_running(workers: int) -> Scene:
    scene = a_scene(a_job().with_workers(workers))
    for phase in (PodPhase.PENDING, PodPhase.RUNNING):
        scene.tick()
        pods = tuple(
            replace(pod, phase=phase, scheduled=True, host=f"127.64.{number // 250}.{number % 250}")
            for number, pod in enumerate(scene.children.pods)
        )
        scene.children = replace(scene.children, pods=pods)
    scene.tick()
    assert scene.job.status.phase is Phase.RUNNING
    return scene


def look(scene: Scene) -> float:
    """Seconds of this processor for one look, the least of five."""
    took = []
    for _ in range(5):
        began = time.process_time()
        reconcile(scene.job, scene.children, at(scene.now))
        took.append(time.process_time() - began)
    return min(took)


def test_a_look_at_a_job_of_the_largest_size_is_linear_in_its_replicas() -> None:
    ratio = look(a_running(6_000)) / look(a_running(300))
    assert ratio < 60, f"20 times the replicas took {ratio:.0f} times as long"
