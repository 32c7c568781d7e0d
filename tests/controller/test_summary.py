"""What the status says besides the phase: counters, times, progress and conditions."""

from __future__ import annotations

from msgspec.structs import replace

from regatta.api.job import Condition, Phase, Progress, Ref, RoleStatus
from regatta.controller.world import PodPhase
from tests.controller.builders import Scene, a_job, a_scene, at


def worker(scene: Scene) -> RoleStatus:
    assert scene.job.status.worker is not None
    return scene.job.status.worker


def test_replicas_are_counted_by_what_they_do() -> None:
    scene = a_scene(a_job().with_workers(6)).run()
    scene.change("j-worker-1", phase=PodPhase.STARTING)
    scene.change("j-worker-2", phase=PodPhase.PENDING)
    scene.change("j-worker-3", phase=PodPhase.UNKNOWN)
    scene.succeed("j-worker-4")
    scene.fail("j-worker-5", 143, stopping=True)

    scene.tick()

    assert worker(scene) == RoleStatus(
        pending=1,
        starting=1,
        running=1,
        failed=1,
        succeeded=1,
        unknown=1,
        ready="1/6",
        replicas=6,
        refs=tuple(Ref(name=f"j-worker-{n}", uid=f"pod-{n + 1}") for n in range(6)),
        done=(4,),
    )


def test_what_is_not_made_yet_is_pending_and_what_has_succeeded_stays_so() -> None:
    scene = a_scene(a_job().with_ps(1).with_workers(2))
    scene.tick()
    assert (worker(scene).pending, worker(scene).ready, worker(scene).refs) == (2, "0/2", ())

    scene.run().succeed("j-worker-0").tick()
    scene.lose("j-worker-0").tick()

    assert (worker(scene).succeeded, worker(scene).pending) == (1, 0)


def test_every_role_has_its_own_counters() -> None:
    scene = a_scene(a_job().with_ps(1).with_workers(2).with_heter(1)).run()
    status = scene.job.status
    assert {role: counted.ready for role, counted in status.roles().items()} == {
        "ps": "1/1",
        "worker": "2/2",
        "heter": "1/1",
    }
    assert (status.mode, status.observed_generation, status.tasks) == ("Heter", 1, {})

    scene = a_scene(a_job().with_task("a", 1).with_task("b", 2)).run()
    status = scene.job.status
    assert {role: counted.ready for role, counted in status.tasks.items()} == {
        "a": "1/1",
        "b": "2/2",
    }
    assert (status.mode, status.worker) == ("Custom", None)


def test_a_size_is_the_one_a_job_runs_with_or_begins_with() -> None:
    scene = a_scene(a_job().with_workers(1)).run()
    ps = a_job().with_ps(2).with_workers(1).obj().spec.ps
    scene.job = replace(scene.job, status=replace(scene.job.status, made_from=""))
    scene.write(replace(scene.job.spec, ps=ps)).scale(worker=3).tick()

    assert scene.job.status.ps is not None
    assert (worker(scene).replicas, scene.job.status.ps.replicas) == (1, 2)


def test_a_job_begins_when_all_its_replicas_have_a_place() -> None:
    scene = a_scene(a_job().with_workers(2))
    scene.tick()
    scene.change("j-worker-0", scheduled=True).tick(5)
    assert scene.job.status.start_time is None

    scene.change("j-worker-1", scheduled=True).tick(5)

    assert (scene.job.status.start_time, scene.job.status.started_awake) == (at(10).wall, 10.0)
    scene.tick(5)
    assert scene.job.status.start_time == at(10).wall


def test_signs_of_life_count_from_when_a_job_runs_where_they_are_heard() -> None:
    scene = a_scene(a_job().with_workers(1))
    scene.tick()
    scene.place().tick(5)
    assert scene.job.status.heartbeat_awake is None
    scene.change("j-worker-0", phase=PodPhase.RUNNING).tick(5)
    assert scene.job.status.heartbeat_awake == 10.0
    scene.tick(5)
    assert scene.job.status.heartbeat_awake == 10.0

    deaf = a_scene(a_job().with_workers(1), services=True).run()
    assert deaf.job.status.heartbeat_awake is None


def test_a_suspended_job_has_neither_begun_nor_been_heard() -> None:
    scene = a_scene(a_job().with_workers(1)).run()

    scene.edit(suspend=True).tick()

    status = scene.job.status
    assert (status.start_time, status.started_awake, status.heartbeat_awake) == (None, None, None)


def test_a_job_that_is_over_says_when_and_starts_nothing_later() -> None:
    scene = a_scene(a_job().with_workers(1).policy(backoff_limit=1)).run()
    scene.fail("j-worker-0", 1).tick()
    assert scene.job.status.restart_at is not None

    scene.edit(abort=True).tick(7)

    status = scene.job.status
    assert (status.phase, status.completion_time, status.restart_at) == (
        Phase.ABORTED,
        at(7).wall,
        None,
    )


def conditions(scene: Scene) -> dict[str, str]:
    return {condition.type: condition.status for condition in scene.job.status.conditions}


def test_conditions_come_when_they_are_true_and_stay_with_their_last_change() -> None:
    scene = a_scene(a_job().with_workers(1))
    scene.tick()
    assert conditions(scene) == {}
    scene.place().tick(1)
    assert conditions(scene) == {"Admitted": "True"}
    scene.tick(1)
    assert conditions(scene) == {"Admitted": "True", "EnvironmentReady": "True"}

    scene.edit(suspend=True).tick(1)

    suspended = {"last_transition_time": at(3).wall, "observed_generation": 2}
    assert scene.job.status.conditions == (
        Condition(type="Admitted", status="False", reason="Suspended", **suspended),
        Condition(type="EnvironmentReady", status="False", reason="Suspended", **suspended),
        Condition(type="Suspended", status="True", reason="Suspended", **suspended),
    )
    before = scene.job.status.conditions
    scene.edit(suspend=True).tick(60)
    assert scene.job.status.conditions == before

    scene.edit(suspend=False).tick()
    assert conditions(scene)["Suspended"] == "False"


def test_a_condition_says_why_in_the_words_of_the_status() -> None:
    failed = a_scene(a_job().with_workers(1)).run()
    failed.fail("j-worker-0", 3).tick()
    condition = failed.job.status.conditions[-1]
    assert (condition.type, condition.status) == ("Failed", "True")
    assert (condition.reason, condition.message) == (
        "ReplicaFailed",
        "j-worker-0 exited with code 3",
    )

    running = a_scene(a_job().with_workers(1)).run()
    assert [c.reason for c in running.job.status.conditions] == ["Starting", "Running"]
    running.succeed("j-worker-0").tick()
    assert conditions(running) == {
        "Admitted": "True",
        "EnvironmentReady": "True",
        "Completed": "True",
    }


def test_progress_is_shown_as_it_was_heard_with_the_time_left() -> None:
    scene = a_scene(a_job().with_workers(1)).run()
    first = Progress(step=10, total=30, metrics={"loss": 0.5}, at=at(10).wall, eta_seconds=7.5)
    second = Progress(step=20, total=30, metrics={"loss": 0.4}, at=at(20).wall, eta_seconds=3.5)
    for heard in (first, second):
        scene.children = replace(scene.children, progress=heard)
        scene.tick(10)
        assert scene.job.status.progress == heard


def test_only_a_job_that_gets_on_has_a_time_left() -> None:
    heard = Progress(step=10, total=30, at=at(10).wall, eta_seconds=7.5)
    unsure = replace(heard, eta_seconds=None)

    scene = a_scene(a_job().with_workers(1).policy(backoff_limit=1)).run()
    scene.children = replace(scene.children, progress=heard)
    scene.tick(10)
    scene.fail("j-worker-0", 1).tick()
    assert (scene.job.status.phase, scene.job.status.progress) == (Phase.RESTARTING, unsure)

    scene.tick(10)
    assert (scene.job.status.phase, scene.job.status.progress) == (Phase.RESTARTING, unsure)
    scene.run()
    assert (scene.job.status.phase, scene.job.status.progress) == (Phase.RUNNING, unsure)


def test_the_last_report_of_a_job_is_kept_without_a_time_left() -> None:
    scene = a_scene(a_job().with_workers(1)).run()
    last = Progress(step=29, total=30, at=at(20).wall, eta_seconds=0.5)

    scene.children = replace(scene.children, progress=last)
    scene.succeed("j-worker-0").tick()

    assert scene.job.status.progress == replace(last, eta_seconds=None)


def test_the_same_report_is_not_written_twice() -> None:
    scene = a_scene(a_job().with_workers(1)).run()
    heard = Progress(step=10, total=30, at=at(10).wall)
    scene.children = replace(scene.children, progress=heard, heartbeat_awake=10.0)
    assert scene.tick(10).status is not None

    scene.children = replace(scene.children, heartbeat_awake=11.0)

    assert scene.tick(1).status is None


def test_a_report_is_a_sign_of_life_of_when_it_was_heard() -> None:
    scene = a_scene(a_job().with_workers(1)).run()
    reported = replace(scene.children, progress=Progress(step=1, at=at(5).wall))

    scene.children = replace(reported, heartbeat_awake=5.5)
    scene.tick(6)
    assert scene.job.status.heartbeat_awake == 5.5

    scene.children = replace(reported, progress=Progress(step=2, at=at(6).wall))
    scene.tick(6)
    assert scene.job.status.heartbeat_awake == 5.5, "it has none of its own"


def test_a_report_without_a_time_is_none() -> None:
    scene = a_scene(a_job().with_workers(1)).run()
    scene.children = replace(scene.children, progress=Progress(step=1))

    assert scene.tick(1).status is None
