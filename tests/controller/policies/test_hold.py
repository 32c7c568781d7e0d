"""What keeps a job waiting: suspension, somebody else in its place, a gang not let in yet."""

from __future__ import annotations

from msgspec.structs import replace

from regatta.api.job import Phase
from regatta.controller.world import Gangs, Pod, PodGroup, PodPhase
from tests.controller.builders import a_job, a_scene, at


def test_suspend_removes_the_pods_and_resume_starts_another_attempt() -> None:
    scene = a_scene(a_job().with_workers(2)).run()

    scene.edit(suspend=True).tick()
    assert (scene.names, scene.job.status.phase) == ([], Phase.SUSPENDED)
    assert scene.job.status.start_time is None
    assert scene.tick(60).pods == ()

    plan = scene.edit(suspend=False).tick()
    assert [(pod.name, pod.attempt) for pod in plan.pods] == [("j-worker-0", 1), ("j-worker-1", 1)]
    assert "Resumed" in scene.events
    assert scene.job.status.restarts == 0


def test_a_job_that_was_scaled_while_suspended_starts_once_at_its_new_size() -> None:
    scene = a_scene(a_job().with_workers(2)).run()
    scene.edit(suspend=True).tick()
    scene.scale(worker=4).tick()

    plan = scene.edit(suspend=False).tick()
    assert [(pod.name, pod.attempt) for pod in plan.pods] == [
        (f"j-worker-{index}", 1) for index in range(4)
    ]
    (environment,) = scene.place().tick().environments
    assert environment.data["PADDLE_TRAINERS_NUM"] == "4"
    assert "Scaling" not in scene.events


def test_somebody_elses_pod_under_our_name_is_told_and_left_alone() -> None:
    scene = a_scene(a_job().with_workers(2))
    foreign = Pod(name="j-worker-1", uid="theirs", foreign=True, phase=PodPhase.RUNNING)
    scene.children = replace(scene.children, pods=(foreign,))

    plan = scene.tick()

    assert (plan.pods, plan.delete, plan.stop) == ((), (), ())
    assert scene.job.status.reason == "ForeignObject"
    assert "j-worker-1" in scene.job.status.message
    assert plan.look_again is not None


def test_somebody_elses_pod_in_the_way_of_growth_stops_nothing_that_runs() -> None:
    scene = a_scene(a_job().with_workers(1)).run()
    foreign = Pod(name="j-worker-1", uid="theirs", foreign=True, phase=PodPhase.RUNNING)
    scene.children = replace(scene.children, pods=(*scene.children.pods, foreign))

    plan = scene.scale(worker=2).tick()

    assert (plan.pods, plan.delete, scene.job.status.phase) == ((), (), Phase.RUNNING)
    assert "to be scaled" in scene.job.status.message
    assert "named j-worker-1" in scene.job.status.message
    assert plan.look_again is not None


def test_a_former_pod_that_never_goes_is_named() -> None:
    scene = a_scene(a_job().with_workers(1).policy(backoff_limit=1)).run()
    scene.fail("j-worker-0", 1)
    held = replace(scene.pod("j-worker-0"), deleting=True, gone_by=at(0).wall)
    scene.tick()
    scene.children = replace(scene.children, pods=(held,))

    scene.tick(20)
    assert "does not go" not in scene.job.status.message
    scene.tick(20)
    assert "the former pod j-worker-0 is being deleted" in scene.job.status.message


def test_a_job_waits_for_its_gang_to_be_admitted() -> None:
    scene = a_scene(a_job().with_workers(2))
    gangs = Gangs(available=frozenset({"volcano"}), default="volcano")
    scene.children = replace(scene.children, gangs=gangs)
    plan = scene.tick()
    assert (plan.pods, [group.name for group in plan.pod_groups]) == ((), ["j"])

    group = PodGroup(name="j", ours=True, phase="Inqueue", min_member=2)
    scene.children = replace(scene.children, gangs=replace(gangs, groups=(group,)))
    assert len(scene.tick().pods) == 2


def test_why_a_job_waits_is_the_schedulers_own_words() -> None:
    scene = a_scene(a_job().with_workers(1))
    scene.tick()
    scene.change("j-worker-0", waiting="needs 4 CPUs, 1 of 2 is free")

    scene.tick()

    assert scene.job.status.phase is Phase.PENDING
    assert scene.job.status.message == "needs 4 CPUs, 1 of 2 is free"
