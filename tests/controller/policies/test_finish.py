"""How a job ends: completion, what stays afterwards, abort, deletion."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from regatta.api.job import CleanPodPolicy, Phase
from tests.controller.builders import a_job, a_scene, at


def test_a_ps_job_completes_when_its_workers_do() -> None:
    scene = a_scene(a_job().with_ps(2).with_workers(2).clean(CleanPodPolicy.NEVER)).run()

    plan = scene.succeed("j-worker-0", "j-worker-1").tick()

    status = scene.job.status
    assert status.phase is Phase.COMPLETED
    assert (status.ps and status.ps.ready, status.worker and status.worker.ready) == ("2/2", "0/2")
    assert (plan.stop, plan.delete) == ((), ())


def test_a_server_that_dies_while_the_job_ends_does_no_harm() -> None:
    scene = a_scene(a_job().with_ps(1).with_workers(1)).run()
    scene.succeed("j-worker-0").fail("j-ps-0", 134)

    scene.tick()

    assert scene.job.status.phase is Phase.COMPLETED


CLEANING = {
    "completed, Always": (CleanPodPolicy.ALWAYS, 0, [], []),
    "completed, OnCompletion": (CleanPodPolicy.ON_COMPLETION, 0, [], []),
    "completed, OnFailure: servers run on": (
        CleanPodPolicy.ON_FAILURE,
        0,
        ["j-ps-0", "j-worker-0"],
        ["j-ps-0"],
    ),
    "completed, Never: servers run on": (
        CleanPodPolicy.NEVER,
        0,
        ["j-ps-0", "j-worker-0"],
        ["j-ps-0"],
    ),
    "failed, Always": (CleanPodPolicy.ALWAYS, 1, [], []),
    "failed, OnFailure": (CleanPodPolicy.ON_FAILURE, 1, [], []),
    "failed, OnCompletion: stopped, kept": (
        CleanPodPolicy.ON_COMPLETION,
        1,
        ["j-ps-0", "j-worker-0"],
        [],
    ),
    "failed, Never: stopped, kept": (CleanPodPolicy.NEVER, 1, ["j-ps-0", "j-worker-0"], []),
}


@pytest.mark.parametrize(("policy", "code", "kept", "alive"), CLEANING.values(), ids=CLEANING)
def test_the_clean_pod_policy_decides_what_stays(
    policy: CleanPodPolicy, code: int, kept: list[str], alive: list[str]
) -> None:
    scene = a_scene(a_job().with_ps(1).with_workers(1).clean(policy)).run()
    if code:
        scene.fail("j-worker-0", code)
    else:
        scene.succeed("j-worker-0")

    scene.tick()
    scene.tick()

    assert scene.names == kept
    assert [pod.name for pod in scene.children.pods if not pod.phase.over] == alive


def test_counters_freeze_at_the_final_phase() -> None:
    scene = a_scene(a_job().with_ps(2).with_workers(2)).run()
    scene.succeed("j-worker-0", "j-worker-1").tick()
    frozen = scene.job.status

    scene.tick(1)

    assert scene.names == []
    assert scene.job.status == frozen


def test_a_pod_deleted_after_the_job_finished_is_not_made_again() -> None:
    scene = a_scene(a_job().with_ps(1).with_workers(1).clean(CleanPodPolicy.NEVER)).run()
    scene.succeed("j-worker-0").tick()

    scene.lose("j-ps-0").tick()

    assert scene.names == ["j-worker-0"]


def test_a_finished_job_is_deleted_after_its_time_to_live() -> None:
    scene = a_scene(a_job().with_workers(1).policy(ttl_seconds_after_finished=30)).run()
    assert scene.succeed("j-worker-0").tick().look_again == 30

    assert not scene.tick(29).delete_job
    assert scene.tick(1).delete_job


def test_abort_stops_everything_and_then_the_job_is_aborted() -> None:
    scene = a_scene(a_job().with_ps(1).with_workers(1)).run()

    plan = scene.edit(abort=True).tick()
    assert {ref.name for ref in plan.stop} == {"j-ps-0", "j-worker-0"}
    assert scene.job.status.phase is Phase.ABORTING

    scene.tick()
    assert scene.job.status.phase is Phase.ABORTED
    assert scene.names == ["j-ps-0", "j-worker-0"]


def test_abort_of_a_waiting_job_removes_pods_that_were_never_placed() -> None:
    scene = a_scene(a_job().with_workers(1))
    scene.tick()

    scene.edit(abort=True).tick()
    scene.tick()

    assert (scene.names, scene.job.status.phase) == ([], Phase.ABORTED)


def test_a_job_being_deleted_creates_nothing() -> None:
    scene = a_scene(a_job().with_workers(2)).run()
    scene.lose("j-worker-0")
    metadata = replace(scene.job.metadata, deletion_timestamp=scene.job.status.start_time)
    scene.job = replace(scene.job, metadata=metadata)

    plan = scene.tick()

    assert plan.pods == ()
    assert [ref.name for ref in plan.delete] == ["j-worker-1"]
    assert scene.job.status.phase is Phase.TERMINATING


def test_a_job_without_time_to_live_is_there_until_its_end_can_be_seen() -> None:
    scene = a_scene(a_job().with_workers(1).policy(ttl_seconds_after_finished=0)).run()
    plan = scene.succeed("j-worker-0").tick()
    assert (plan.delete_job, plan.look_again) == (False, 3)
    assert scene.tick(3).delete_job


def test_an_abort_that_was_seen_cannot_be_taken_back() -> None:
    scene = a_scene(a_job().with_workers(2)).run()
    scene.edit(abort=True).tick()
    assert scene.job.status.phase is Phase.ABORTING

    scene.edit(abort=False).tick()

    assert scene.job.status.phase is Phase.ABORTED


def test_a_job_that_is_deleted_without_its_pods_leaves_them_running() -> None:
    scene = a_scene(a_job().with_workers(2)).run()
    going = {"deletion_timestamp": at(1).wall, "finalizers": ("orphan",)}
    scene.job = replace(scene.job, metadata=replace(scene.job.metadata, **going))

    plan = scene.tick()

    assert (plan.delete, plan.stop, scene.names) == ((), (), ["j-worker-0", "j-worker-1"])
