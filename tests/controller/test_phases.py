"""How far a job is: its phase, and in its message why it is no further."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from regatta.api.job import Completion, Phase
from regatta.controller.judge import Kind, Verdict
from regatta.controller.observe import observe
from regatta.controller.summary import summarise
from regatta.controller.world import Children, Pod, PodPhase
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
    "all run": (a_running, lambda s: s, Phase.RUNNING, ""),
    "one is done and the others run": (
        a_running,
        lambda s: s.succeed("j-worker-0"),
        Phase.RUNNING,
        "",
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


def test_a_job_without_replicas_neither_begins_nor_runs() -> None:
    job = a_job().with_task("t", 1).obj()
    job = replace(job, spec=replace(job.spec, tasks=()))

    status = summarise(job, observe(job, Children()), Verdict(kind=Kind.GO), at(1))

    assert status.phase is not Phase.RUNNING
    assert status.start_time is None


def test_what_failed_last_is_still_told_when_all_run_again() -> None:
    scene = a_scene(a_job().with_workers(1).policy(backoff_limit=1)).run()
    scene.fail("j-worker-0", 7).tick()
    scene.tick(1)
    scene.run()

    assert (scene.job.status.phase, scene.job.status.message) == (Phase.RUNNING, "")
    assert scene.job.status.failure is not None
    assert scene.job.status.failure.exit_code == 7


#: Two workers of which the second is like this, and the phase of the job.
SECOND: dict[str, tuple[dict[str, Any], Phase]] = {
    "runs": ({"phase": PodPhase.RUNNING, "scheduled": True}, Phase.RUNNING),
    "is on a node that says nothing": (
        {"phase": PodPhase.UNKNOWN, "scheduled": True},
        Phase.RUNNING,
    ),
    "is set up": ({"phase": PodPhase.STARTING, "scheduled": True}, Phase.STARTING),
    "waits in its place": ({"phase": PodPhase.PENDING, "scheduled": True}, Phase.STARTING),
    "has no place": ({"phase": PodPhase.PENDING, "scheduled": False}, Phase.PENDING),
}


@pytest.mark.parametrize(("pod", "phase"), SECOND.values(), ids=SECOND)
def test_the_phase_is_that_of_the_replica_that_is_least_far(
    pod: dict[str, Any], phase: Phase
) -> None:
    scene = a_scene(a_job().with_workers(2)).run()

    scene.change("j-worker-1", **pod).tick()

    assert scene.job.status.phase is phase


def test_a_replica_that_has_succeeded_needs_no_place() -> None:
    scene = a_scene(a_job().with_ps(1).with_workers(2)).run()
    scene.succeed("j-worker-0").tick()
    scene.lose("j-worker-0").change("j-worker-1", phase=PodPhase.STARTING).tick()

    assert scene.job.status.phase is Phase.STARTING


def test_a_task_that_may_fail_leaves_the_job_running() -> None:
    scene = a_scene(a_job().with_task("t", 2, Completion(min_failed=2))).run()

    scene.fail("j-t-0", 1).tick()

    assert scene.job.status.phase is Phase.RUNNING


@pytest.mark.parametrize("deed", ["restart", "scale"])
def test_until_all_run_again_a_person_sees_why_they_do_not(deed: str) -> None:
    scene = a_scene(a_job().with_workers(2)).run()
    scene.lose("j-worker-0") if deed == "restart" else scene.scale(worker=1)
    scene.tick()
    phase = Phase.RESTARTING if deed == "restart" else Phase.SCALING
    why = scene.job.status.message
    assert (scene.job.status.phase, bool(why)) == (phase, deed == "restart")

    scene.tick()
    scene.place().tick()
    assert (scene.job.status.phase, scene.job.status.message) == (phase, why)
    scene.change("j-worker-0", waiting="pulls its image").tick()
    assert (scene.job.status.phase, scene.job.status.message) == (phase, "pulls its image")

    for name in scene.names:
        scene.change(name, phase=PodPhase.RUNNING, waiting="")
    scene.tick()
    assert (scene.job.status.phase, scene.job.status.message) == (Phase.RUNNING, "")


def test_a_job_that_starts_says_how_many_can_be_reached_and_then_what_it_waits_for() -> None:
    scene = a_scene(a_job().with_workers(3))
    scene.tick()
    for index in range(3):
        scene.change(f"j-worker-{index}", scheduled=True, waiting="pulls its image")
    scene.change("j-worker-2", host="127.64.0.3").tick()
    assert scene.job.status.message == "1 of 3 replicas have an address"

    scene.change("j-worker-0", host="127.64.0.1").change("j-worker-1", host="127.64.0.2").tick()
    scene.tick()

    assert scene.job.status.phase is Phase.STARTING
    assert scene.job.status.message == "pulls its image"


def test_what_a_pod_waited_for_is_forgotten_when_it_runs_or_has_ended() -> None:
    scene = a_scene(a_job().with_ps(1).with_workers(2)).run()
    scene.change("j-worker-0", waiting="an image that came")
    scene.succeed("j-worker-0").change("j-ps-0", phase=PodPhase.STARTING).tick()

    assert scene.job.status.message == ""

    scene.change("j-ps-0", phase=PodPhase.RUNNING)
    scene.change("j-worker-1", waiting="a probe").tick()

    assert (scene.job.status.phase, scene.job.status.message) == (Phase.RUNNING, "")


def test_what_a_growth_waits_for_is_told_while_the_job_runs() -> None:
    scene = a_scene(a_job().with_workers(1)).run()
    scene.scale(worker=2).tick()
    scene.tick()
    assert scene.job.status.message == ""

    scene.change("j-worker-1", waiting="needs 4 CPUs").tick()

    assert scene.job.status.message == "to be scaled: needs 4 CPUs"


def held(name: str, index: int) -> Pod:
    """A pod of an attempt before, which goes and does not go."""
    return Pod(
        name=name, uid="held", role="worker", index=index, deleting=True, gone_by=at(-60).wall
    )


def test_a_former_pod_that_does_not_go_is_named_only_where_its_name_is_needed() -> None:
    scene = a_scene(a_job().with_workers(1)).run()
    scene.children = replace(scene.children, pods=(*scene.children.pods, held("j-worker-5", 5)))
    scene.change("j-worker-0", phase=PodPhase.STARTING).tick()
    assert scene.job.status.message == ""

    scene = a_scene(a_job().with_workers(1)).run()
    scene.children = replace(scene.children, pods=(*scene.children.pods, held("j-worker-1", 1)))
    scene.scale(worker=2).tick()
    assert scene.job.status.message.startswith("to be scaled: the former pod j-worker-1 is being")
