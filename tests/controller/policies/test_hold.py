"""What keeps a job waiting: suspension, somebody else in its place, a gang not let in yet."""

from __future__ import annotations

from msgspec.structs import replace

from regatta.api.job import Phase
from regatta.controller.plan import Event
from regatta.controller.world import Gangs, Pod, PodGroup, PodPhase
from tests.controller.builders import Scene, a_job, a_scene, at


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


def test_a_suspension_is_told_once() -> None:
    scene = a_scene(a_job().with_workers(1)).run()

    message = "suspended; its pods are removed"
    events = (Event(type="Normal", reason="Suspended", message=message),)
    assert scene.edit(suspend=True).tick().events == events
    assert scene.job.status.reason == "Suspended"
    assert scene.tick(60).events == ()


def test_a_job_that_is_born_suspended_begins_with_its_first_attempt() -> None:
    scene = a_scene(a_job().with_workers(1).policy(suspend=True))
    scene.tick()

    assert [event.message for event in scene.plan.events] == ["suspended before it had any pods"]

    (pod,) = scene.edit(suspend=False).tick().pods

    assert (pod.attempt, pod.revision) == (0, 1)


def in_the_way(scene: Scene, *names: str) -> Scene:
    pods = tuple(Pod(name=name, uid=name, foreign=True) for name in names)
    scene.children = replace(scene.children, pods=(*scene.children.pods, *pods))
    return scene


def test_why_a_job_is_held_is_told_once() -> None:
    scene = in_the_way(a_scene(a_job().with_workers(1)), "j-worker-0")

    (event,) = scene.tick().events

    assert (event.type, event.reason) == ("Warning", "ForeignObject")
    assert event.message == scene.job.status.message
    assert scene.tick(30).events == ()


def test_a_wait_that_has_nothing_to_say_is_no_event() -> None:
    scene = a_scene(a_job().with_workers(1))
    scene.children = replace(scene.children, admitted=False)

    plan = scene.tick()

    assert (plan.events, plan.pods, scene.job.status.reason) == ((), (), "WaitingForPorts")


def test_what_is_left_of_an_earlier_attempt_goes_while_the_job_is_held() -> None:
    scene = in_the_way(a_scene(a_job().with_workers(1)), "j-worker-0")
    old = Pod(name="j-worker-9", uid="old", role="worker", index=9)
    scene.children = replace(scene.children, pods=(*scene.children.pods, old))

    assert [ref.name for ref in scene.tick().delete] == ["j-worker-9"]


def test_three_that_are_in_the_way_are_named_in_order() -> None:
    names = [f"j-worker-{n}" for n in (3, 1, 0, 2)]
    scene = in_the_way(a_scene(a_job().with_workers(4)), *names)

    scene.tick()

    assert "needs: j-worker-0, j-worker-1, j-worker-2; delete" in scene.job.status.message
