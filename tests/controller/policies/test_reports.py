"""Values in reports of progress that are no numbers: told once each."""

from __future__ import annotations

from msgspec.structs import replace

from regatta.api.job import JobStatus, Progress
from regatta.controller.plan import Event, Plan
from regatta.controller.policies.reports import tell_of_no_numbers
from tests.controller.builders import Scene, a_job, a_scene, at


def reported(scene: Scene, second: int, **odd: str) -> list[str]:
    """What is told of a report that has these."""
    progress = Progress(step=second, at=at(second).wall, not_numbers=odd)
    scene.children = replace(scene.children, progress=progress)
    plan = scene.tick(1)
    return [event.message for event in plan.events if event.reason == "NotANumber"]


def test_each_is_told_once_whatever_else_comes() -> None:
    scene = a_scene(a_job().with_workers(1)).run()
    [told] = reported(scene, 1, loss="nan", phase="'a'")
    assert told == (
        "in a report of progress, loss was nan and phase was 'a', which are no numbers; they are "
        "left out, and the rest of the report counts"
    )
    assert reported(scene, 2, loss="inf") == []
    assert reported(scene, 3) == []
    [told] = reported(scene, 4, loss="nan", lr="nan")
    assert told.startswith(
        "in a report of progress, lr was nan, which is no number; it is left out"
    )
    assert scene.job.status.progress is not None
    known = {"loss": "nan", "phase": "'a'", "lr": "nan"}
    assert scene.job.status.progress.not_numbers == known
    assert reported(scene, 5, loss="inf") == []
    assert scene.job.status.progress.not_numbers == known, "as it was told"


def test_a_program_that_makes_up_names_is_told_of_so_often_and_no_more() -> None:
    scene = a_scene(a_job().with_workers(1)).run()
    [told] = reported(scene, 1, **{f"m{n}": "nan" for n in range(100)})
    assert told.count(" was nan") == 32
    assert reported(scene, 2, other="nan") == []


def test_it_is_a_warning_and_hides_no_other_event() -> None:
    odd = Progress(step=1, at=at(1).wall, not_numbers={"loss": "nan"})
    other = Event(type="Normal", reason="Running", message="")
    plan = Plan(status=JobStatus(progress=odd), events=(other,))
    said, told = tell_of_no_numbers(plan, JobStatus()).events
    assert (said, told.type) == (other, "Warning")
