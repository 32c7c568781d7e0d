"""Phase, message and counts as a job goes its way."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from regatta.api.job import Phase, Progress
from regatta.controller.world import Pod, PodPhase
from tests.controller.builders import Scene, a_job, a_scene, at


def a_starting() -> Scene:
    scene = a_scene(a_job().with_ps(1).with_workers(2))
    scene.tick()
    return scene


def a_running() -> Scene:
    return a_scene(a_job().with_ps(1).with_workers(2)).run()


PHASES: dict[str, tuple[Callable[[], Scene], Callable[[Scene], object], Phase, str]] = {
    "nothing is placed": (a_starting, lambda s: s, Phase.PENDING, ""),
    "one waits, and says for what": (
        a_starting,
        lambda s: s.place().change("j-worker-1", scheduled=False, waiting="no GPU is free"),
        Phase.PENDING,
        "no GPU is free",
    ),
    "all are placed": (
        a_starting,
        lambda s: s.place().change("j-worker-1", host=None),
        Phase.STARTING,
        "2 of 3 replicas have an address",
    ),
    "all have their environment and one starts": (
        a_running,
        lambda s: s.change("j-worker-1", phase=PodPhase.STARTING, waiting="pulls its image"),
        Phase.STARTING,
        "pulls its image",
    ),
    "all run": (a_running, lambda s: s, Phase.RUNNING, ""),
    "one is done and the others run": (
        a_running,
        lambda s: s.succeed("j-worker-0"),
        Phase.RUNNING,
        "",
    ),
    "a node missed a heartbeat": (
        a_running,
        lambda s: s.change("j-worker-0", phase=PodPhase.UNKNOWN),
        Phase.RUNNING,
        "",
    ),
    "a larger size waits": (
        a_running,
        lambda s: (s.scale(worker=3).tick(), s.change("j-worker-2", waiting="no GPU is free")),
        Phase.RUNNING,
        "to be scaled: no GPU is free",
    ),
}


@pytest.mark.parametrize(("before", "happen", "phase", "message"), PHASES.values(), ids=PHASES)
def test_the_phase_says_how_far_a_job_is_and_the_message_why_no_further(
    before: Callable[[], Scene], happen: Callable[[Scene], object], phase: Phase, message: str
) -> None:
    scene = before()
    happen(scene)
    scene.tick()

    assert (scene.job.status.phase, scene.job.status.message) == (phase, message)


def test_a_restart_is_shown_until_all_run_again() -> None:
    scene = a_scene(a_job().with_workers(2).policy(backoff_limit=1)).run()
    scene.fail("j-worker-0", 3).tick()
    why = scene.job.status.message
    assert "j-worker-0 exited with code 3; starting again" in why

    scene.tick(5)
    scene.place().tick()
    assert (scene.job.status.phase, scene.job.status.message) == (Phase.RESTARTING, why)

    scene.run()
    assert (scene.job.status.phase, scene.job.status.message) == (Phase.RUNNING, "")


def test_replicas_are_counted_by_what_they_do() -> None:
    scene = a_scene(a_job().with_ps(1).with_workers(4)).run()
    scene.succeed("j-worker-0").change("j-worker-1", phase=PodPhase.UNKNOWN)
    scene.change("j-worker-2", phase=PodPhase.STARTING).tick()

    worker = scene.job.status.worker
    assert worker is not None
    assert (worker.succeeded, worker.unknown, worker.starting, worker.running) == (1, 1, 1, 1)
    assert (worker.ready, worker.replicas, worker.done) == ("1/4", 4, (0,))
    assert [ref.name for ref in worker.refs] == [f"j-worker-{index}" for index in range(4)]
    assert scene.job.status.heter is None

    scene.scale(worker=6).tick()
    assert scene.job.status.worker is not None
    assert scene.job.status.worker.replicas == 4, "those that it runs with, not those asked for"


def test_a_pod_that_does_not_go_is_named_by_whoever_needs_its_name() -> None:
    scene = a_scene(a_job().with_workers(1))
    former = Pod(name="j-worker-0", uid="old", role="worker", deleting=True, gone_by=at(0).wall)
    scene.children = replace(scene.children, pods=(former,))

    scene.tick(60)

    assert "the former pod j-worker-0 is being deleted and does not go" in scene.job.status.message


def test_a_condition_changes_its_time_only_when_it_turns() -> None:
    scene = a_running()
    admitted = next(c for c in scene.job.status.conditions if c.type == "Admitted")
    assert (admitted.status, admitted.reason) == ("True", "Starting")

    scene.edit(suspend=True).tick(10)
    turned = {c.type: (c.status, c.last_transition_time) for c in scene.job.status.conditions}
    assert turned["Admitted"] == ("False", at(scene.now).wall)
    assert turned["Suspended"] == ("True", at(scene.now).wall)
    assert {"Completed", "Failed"}.isdisjoint(turned), "what never was is not told"

    scene.tick(10)
    again = {c.type: (c.status, c.last_transition_time) for c in scene.job.status.conditions}
    assert again == turned


def test_a_suspended_job_has_not_started() -> None:
    scene = a_running()
    assert scene.job.status.start_time is not None

    scene.edit(suspend=True).tick()

    assert scene.job.status.start_time is None
    assert scene.job.status.started_awake is None


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
