"""What the status says of a job's progress."""

from __future__ import annotations

from msgspec.structs import replace

from regatta.api.job import Progress
from tests.controller.builders import a_job, a_scene, at


def test_progress_is_shown_as_it_was_heard_with_the_time_left() -> None:
    scene = a_scene(a_job().with_workers(1)).run()
    first = Progress(step=10, total=30, metrics={"loss": 0.5}, at=at(10).wall, eta_seconds=7.5)
    second = Progress(step=20, total=30, metrics={"loss": 0.4}, at=at(20).wall, eta_seconds=3.5)
    for heard in (first, second):
        scene.children = replace(scene.children, progress=heard)
        scene.tick(10)
        assert scene.job.status.progress == heard


def test_the_same_report_is_not_written_twice() -> None:
    scene = a_scene(a_job().with_workers(1)).run()
    heard = Progress(step=10, total=30, at=at(10).wall)
    scene.children = replace(scene.children, progress=heard, heartbeat_awake=10.0)
    assert scene.tick(10).status is not None

    scene.children = replace(scene.children, heartbeat_awake=11.0)

    assert scene.tick(1).status is None
