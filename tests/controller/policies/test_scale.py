"""Another number of workers while the job runs."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from regatta.api.job import JobStatus, Phase, RestartScope, RoleStatus
from regatta.controller.observe import observe
from regatta.controller.plan import Event
from regatta.controller.policies.scale import first_size
from regatta.controller.world import Children, Gangs, PodGroup
from tests.controller.builders import Scene, a_job, a_scene


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


OTHER = {"spec": {"containers": [{"name": "main", "command": ["false"]}]}}


def edited(scene: Scene, template: dict[str, Any] = OTHER, generations: int = 1) -> Scene:
    role = scene.job.spec.worker
    assert role is not None
    generation = scene.job.metadata.generation + generations
    spec = replace(scene.job.spec, worker=replace(role, template=template))
    metadata = replace(scene.job.metadata, generation=generation)
    scene.job = replace(scene.job, metadata=metadata, spec=spec)
    return scene


def test_an_edit_of_the_templates_is_told() -> None:
    scene = edited(a_scene(a_job().with_workers(1)).run())

    message = "the pod templates were edited; all replicas start again"
    assert Event(type="Normal", reason="Restarting", message=message) in scene.tick().events


def test_templates_are_compared_only_when_a_spec_is_new() -> None:
    """A generation whose pods run was made from what it says, whatever an upgrade counts in."""
    scene = edited(a_scene(a_job().with_workers(1)).run(), generations=0)

    assert scene.tick().delete == ()


def test_a_job_that_says_nothing_of_its_templates_is_not_started_again() -> None:
    """The former operator's."""
    scene = a_scene(a_job().with_workers(1)).run()
    scene.job = replace(scene.job, status=replace(scene.job.status, made_from=""))

    assert edited(scene).tick().delete == ()


def test_no_edit_is_followed_once_a_worker_has_succeeded() -> None:
    scene = a_scene(a_job().with_workers(2)).run()
    scene.succeed("j-worker-0").tick()

    plan = edited(scene).tick()

    assert (plan.delete, plan.pods, scene.job.status.phase) == ((), (), Phase.RUNNING)


def test_before_anything_is_made_the_spec_is_followed_without_a_word() -> None:
    scene = a_scene(a_job().with_workers(1))
    scene.children = replace(scene.children, admitted=False)
    scene.tick()
    assert (scene.job.status.shape, scene.job.status.revision) == ({"worker": 1}, 1)

    edited(scene).scale(worker=2).tick()

    status = scene.job.status
    assert (status.shape, status.attempt, status.revision) == ({"worker": 2}, 0, 1)
    scene.children = replace(scene.children, admitted=True)
    commands = [p.manifest["spec"]["containers"][0]["command"] for p in scene.tick().pods]
    assert commands == [["false"], ["false"]]


BEGUN = {
    "a pod": lambda s: s.lose("j-worker-1"),
    "both": lambda s: s,
}


@pytest.mark.parametrize("begin", BEGUN.values(), ids=BEGUN)
def test_once_anything_is_made_another_size_is_another_attempt(begin: Any) -> None:
    scene = a_scene(a_job().with_workers(2))
    scene.tick()
    begin(scene)

    scene.scale(worker=1).tick()

    assert (scene.job.status.shape, scene.job.status.attempt) == ({"worker": 1}, 1)


def test_an_environment_that_is_written_keeps_its_size_though_no_pod_is_left() -> None:
    policy = {"backoff_limit": 1, "restart_scope": RestartScope.ROLE}
    scene = a_scene(a_job().with_workers(2).policy(**policy)).run()
    scene.fail("j-worker-0", 1).tick()
    assert (scene.names, scene.children.environments) == ([], {1})

    scene.scale(worker=3).tick()

    assert (scene.job.status.shape, scene.job.status.revision) == ({"worker": 2}, 1)


def test_what_is_done_has_begun_though_nothing_is_left_of_it() -> None:
    memory = RoleStatus(done=(0,))
    status = JobStatus(revision=1, shape={"worker": 1}, worker=memory)
    job = replace(a_job().with_workers(2).obj(), status=status)

    assert first_size(job, observe(job, Children())) is job


def test_a_gang_that_cannot_be_changed_is_something_that_was_made() -> None:
    scene = a_scene(a_job().with_workers(2), services=True)
    gangs = Gangs(available=frozenset({"native"}), default="native")
    scene.children = replace(scene.children, gangs=gangs)
    scene.tick()
    group = PodGroup(name="j-0", ours=True, scheduler="native")
    scene.children = replace(scene.children, pods=(), gangs=replace(gangs, groups=(group,)))

    scene.scale(worker=1).tick()

    assert scene.job.status.attempt == 1


def test_a_gang_that_follows_is_not() -> None:
    scene = a_scene(a_job().with_workers(2), services=True)
    group = PodGroup(name="j", ours=True, phase="Pending")
    gangs = Gangs(available=frozenset({"volcano"}), default="volcano", groups=(group,))
    scene.children = replace(scene.children, gangs=gangs)
    scene.tick()

    scene.scale(worker=1).tick()

    assert (scene.job.status.attempt, scene.job.status.shape) == (0, {"worker": 1})


def test_a_scaling_is_told_with_the_roles_that_change() -> None:
    scene = a_scene(a_job().with_ps(2).with_workers(2)).run()
    scene.scale(worker=3).tick()

    (event, *_) = scene.place().tick().events

    message = "scaling worker 2 to 3; all replicas start again with the new environment"
    assert event == Event(type="Normal", reason="Scaling", message=message)


def test_a_role_that_is_new_grows_from_nothing() -> None:
    scene = a_scene(a_job().with_workers(1)).run()
    scene.job = replace(scene.job, status=replace(scene.job.status, made_from=""))
    ps = a_job().with_ps(1).with_workers(1).obj().spec.ps
    scene.write(replace(scene.job.spec, ps=ps)).tick()

    (event, *_) = scene.place().tick().events

    assert event.message.startswith("scaling ps 0 to 1; ")


def test_what_a_job_grows_by_is_made_for_the_attempt_to_come() -> None:
    scene = a_scene(a_job().with_workers(1).policy(backoff_limit=9)).run()
    scene.fail("j-worker-0", 1).tick()
    scene.tick(1)
    scene.run()
    assert scene.job.status.attempt == 1

    (pod,) = scene.scale(worker=2).tick().pods

    assert (pod.name, pod.attempt, pod.revision) == ("j-worker-1", 2, 3)
