"""What the status says of a job's progress."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from regatta.api.job import Phase, Progress
from tests.controller.builders import a_job, a_scene, at


@pytest.mark.parametrize(
    ("step", "total", "eta"),
    [
        (10, 30, 20.0),
        (0, 30, None),
        (10, None, None),
        (10**400, 10**401, None),
        (1, 10**400, None),
        (1, 10**308, None),
    ],
    ids=["known", "no step", "no total", "both huge", "huge total", "infinite"],
)
def test_time_left_is_told_where_it_can_be_counted(
    step: int, total: int | None, eta: float | None
) -> None:
    scene = a_scene(a_job().with_workers(1)).run()
    seen = Progress(step=step, total=total, at=at(scene.now + 10).wall)
    scene.children = replace(scene.children, progress=seen)
    scene.tick(10)
    assert scene.job.status.phase is Phase.RUNNING
    assert scene.job.status.progress is not None
    assert scene.job.status.progress.eta_seconds == eta
