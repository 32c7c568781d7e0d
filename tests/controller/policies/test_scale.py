"""Another number of workers while the job runs."""

from __future__ import annotations

from msgspec.structs import replace

from regatta.api.job import Phase
from tests.controller.builders import a_job, a_scene


def test_templates_that_were_edited_while_nobody_looked_are_followed() -> None:
    scene = a_scene(a_job().with_workers(2)).run()
    role = scene.job.spec.worker
    assert role is not None
    other = {"spec": {"containers": [{"name": "main", "command": ["false"]}]}}
    metadata = replace(scene.job.metadata, generation=4)  # suspended, edited, resumed
    spec = replace(scene.job.spec, worker=replace(role, template=other))
    scene.job = replace(scene.job, metadata=metadata, spec=spec)

    plan = scene.tick()
    assert (scene.job.status.phase, scene.job.status.restarts) == (Phase.RESTARTING, 0)
    assert [ref.name for ref in plan.delete if ref.kind == "Pod"] == ["j-worker-0", "j-worker-1"]

    plan = scene.tick()
    commands = [pod.manifest["spec"]["containers"][0]["command"] for pod in plan.pods]
    assert commands == [["false"], ["false"]]


def test_scaling_up_stops_nothing_until_the_new_size_is_placed() -> None:
    scene = a_scene(a_job().with_workers(2)).run()

    plan = scene.scale(worker=3).tick()
    assert ([pod.name for pod in plan.pods], plan.delete) == (["j-worker-2"], ())
    assert scene.tick(60).delete == ()

    scene.place()
    plan = scene.tick()
    assert [ref.name for ref in plan.delete] == ["j-worker-0", "j-worker-1"]
    assert scene.job.status.phase is Phase.SCALING

    scene.run()
    assert scene.job.status.phase is Phase.RUNNING
    assert {pod.revision for pod in scene.children.pods} == {2}
    assert scene.children.environments == {2}
    assert scene.job.status.restarts == 0


def test_scaling_down_restarts_the_rest_with_the_new_count() -> None:
    scene = a_scene(a_job().with_workers(3)).run()

    scene.scale(worker=2).tick()
    scene.run()

    assert scene.names == ["j-worker-0", "j-worker-1"]
    assert scene.job.status.worker is not None
    assert scene.job.status.worker.ready == "2/2"


def test_taking_a_scaling_back_removes_what_was_asked_for() -> None:
    scene = a_scene(a_job().with_workers(2)).run()
    scene.scale(worker=3).tick()

    scene.scale(worker=2).tick()
    scene.tick()

    assert scene.names == ["j-worker-0", "j-worker-1"]
    assert scene.job.status.phase is Phase.RUNNING
    assert {pod.attempt for pod in scene.children.pods} == {0}


def test_nothing_is_scaled_once_a_worker_has_succeeded() -> None:
    scene = a_scene(a_job().with_workers(2)).run()
    scene.succeed("j-worker-0").tick()

    scene.scale(worker=3).tick()

    assert scene.names == ["j-worker-0", "j-worker-1"]
    scene.succeed("j-worker-1").tick()
    assert scene.job.status.phase is Phase.COMPLETED
