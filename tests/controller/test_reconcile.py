"""The life of a job as a whole."""

from __future__ import annotations

from tests.controller.builders import Scene, a_job, a_scene


def test_a_settled_job_plans_nothing() -> None:
    scene = a_scene(a_job().with_ps(2).with_workers(2)).run()

    plan = scene.tick(60)

    assert (plan.status, plan.pods, plan.delete, plan.stop, plan.events) == (None, (), (), (), ())


def test_events_name_every_transition_once() -> None:
    scene: Scene = a_scene(a_job().with_workers(1)).run()
    scene.tick(5)
    scene.succeed("j-worker-0").tick()

    assert scene.events == ["Created", "Starting", "Running", "Completed"]
