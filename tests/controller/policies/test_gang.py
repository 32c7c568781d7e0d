"""Gangs on a cluster: whose PodGroup, when it is made, followed and removed."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from regatta.api.job import Phase, SchedulingPolicy
from regatta.controller.world import Gangs, PodGroup
from tests.controller.builders import JobBuilder, Scene, a_job, a_scene

BOTH = frozenset({"volcano", "native"})


def on_cluster(builder: JobBuilder, default: str = "", **gangs: Any) -> Scene:
    scene = a_scene(builder, services=True)
    known = Gangs(available=gangs.pop("available", BOTH), default=default, **gangs)
    scene.children = replace(scene.children, gangs=known)
    return scene


def with_groups(scene: Scene, *groups: PodGroup) -> Scene:
    gangs = replace(scene.children.gangs, groups=groups)  # type: ignore[type-var]
    scene.children = replace(scene.children, gangs=gangs)
    return scene


def template(scheduler: str) -> dict[str, Any]:
    return {"spec": {"schedulerName": scheduler, "containers": [{"name": "main"}]}}


def test_volcano_on_the_worker_alone_gangs_the_whole_job() -> None:
    scene = on_cluster(a_job().with_ps(1).with_workers(1, template("volcano")))
    with_groups(scene, PodGroup(name="j", ours=True, phase="Inqueue", min_member=2))

    plan = scene.tick()

    assert [pod.manifest["spec"]["schedulerName"] for pod in plan.pods] == ["volcano", "volcano"]
    names = {
        p.manifest["metadata"]["annotations"]["scheduling.k8s.io/group-name"] for p in plan.pods
    }
    assert names == {"j"}


def test_a_job_with_a_scheduler_of_its_own_stays_out_of_gangs() -> None:
    plan = on_cluster(a_job().with_workers(2, template("mine")), default="volcano").tick()

    assert (plan.pod_groups, len(plan.pods)) == ((), 2)


def test_the_group_asks_for_every_replica_unless_told_otherwise() -> None:
    scene = on_cluster(a_job().with_ps(2).with_workers(3), default="volcano")
    (group,) = scene.tick().pod_groups
    assert group.manifest["spec"] == {"minMember": 5}

    job = scene.job
    policy = SchedulingPolicy(min_available=3, queue="q", priority_class="high")
    scene.job = replace(job, spec=replace(job.spec, scheduling_policy=policy))
    (group,) = scene.tick().pod_groups
    spec = {"minMember": 3, "queue": "q", "priorityClassName": "high"}
    assert group.manifest["spec"] == spec


@pytest.mark.parametrize(
    ("phase", "pods"), [("", 0), ("Pending", 0), ("Inqueue", 2), ("Running", 2), ("Unknown", 2)]
)
def test_pods_wait_until_volcano_has_let_the_group_in(phase: str, pods: int) -> None:
    scene = on_cluster(a_job().with_workers(2), default="volcano")
    with_groups(scene, PodGroup(name="j", phase=phase))

    assert len(scene.tick().pods) == pods


def test_a_users_own_group_is_neither_made_again_nor_resized_nor_removed() -> None:
    scene = on_cluster(a_job().with_workers(2), default="volcano")
    with_groups(scene, PodGroup(name="j", ours=False, phase="Inqueue", min_member=1))

    plan = scene.tick()
    assert (plan.pod_groups, plan.regroup) == ((), ())

    scene.run()
    plan = scene.succeed("j-worker-0", "j-worker-1").tick()
    assert scene.job.status.phase is Phase.COMPLETED
    assert [ref for ref in plan.delete if ref.kind == "PodGroup"] == []


def test_our_group_follows_a_scaling_and_goes_when_the_job_ends() -> None:
    scene = on_cluster(a_job().with_workers(2), default="volcano")
    with_groups(scene, PodGroup(name="j", uid="g", ours=True, phase="Inqueue", min_member=2))
    scene.run()

    plan = scene.scale(worker=3).tick()
    assert [(group.name, group.spec) for group in plan.regroup] == [("j", {"minMember": 3})]

    scene.edit(abort=True).tick()
    plan = scene.tick()
    assert [(ref.name, ref.uid) for ref in plan.delete if ref.kind == "PodGroup"] == [("j", "g")]


def test_a_job_that_waits_to_be_let_in_can_be_made_smaller() -> None:
    scene = on_cluster(a_job().with_workers(6), default="volcano")
    group = PodGroup(
        name="j",
        uid="g",
        ours=True,
        phase="Pending",
        min_member=6,
        queue="slow",
        min_resources={"cpu": "100", "memory": "1Ti"},
    )
    with_groups(scene, group).tick()
    scene.scale(worker=2)
    policy = SchedulingPolicy(queue="fast", min_resources={"cpu": "1"})
    scene.job = replace(scene.job, spec=replace(scene.job.spec, scheduling_policy=policy))

    (regroup,) = scene.tick().regroup

    wanted = {"minMember": 2, "queue": "fast", "minResources": {"cpu": "1", "memory": None}}
    assert regroup.spec == wanted
    let_in = replace(group, phase="Inqueue", min_member=2, queue="fast", min_resources={"cpu": "1"})
    plan = with_groups(scene, let_in).tick()
    assert (len(plan.pods), plan.regroup) == (2, ())


def test_a_limit_that_is_taken_away_is_taken_from_the_group() -> None:
    scene = on_cluster(a_job().with_workers(1), default="volcano")
    group = PodGroup(name="j", ours=True, min_member=1, min_resources={"cpu": "9"})

    (regroup,) = with_groups(scene, group).tick().regroup

    assert regroup.spec == {"minResources": None}


def test_a_suspended_job_gives_its_place_in_the_queue_back() -> None:
    scene = on_cluster(a_job().with_workers(1), default="volcano")
    with_groups(scene, PodGroup(name="j", ours=True, phase="Inqueue", min_member=1))
    scene.run()

    plan = scene.edit(suspend=True).tick()

    assert [ref.name for ref in plan.delete if ref.kind == "PodGroup"] == ["j"]


def test_kubernetes_own_gangs_are_one_an_attempt() -> None:
    builder = a_job().with_workers(2).policy(backoff_limit=1)
    scene = on_cluster(builder, default="native")
    plan = scene.tick()
    (group,) = plan.pod_groups
    assert group.manifest["spec"] == {"schedulingPolicy": {"gang": {"minCount": 2}}}
    assert {p.manifest["spec"]["schedulingGroup"]["podGroupName"] for p in plan.pods} == {"j-0"}

    with_groups(scene, PodGroup(name="j-0", ours=True, scheduler="native"))
    scene.run()
    scene.fail("j-worker-0", 1).tick()
    plan = scene.tick(5)

    assert [group.name for group in plan.pod_groups] == ["j-1"]
    assert [ref.name for ref in plan.delete if ref.kind == "PodGroup"] == ["j-0"]


def test_a_gang_that_cannot_grow_starts_again_at_once_at_its_new_size() -> None:
    scene = on_cluster(a_job().with_workers(2), default="native")
    with_groups(scene, PodGroup(name="j-0", ours=True, scheduler="native"))
    scene.run()

    plan = scene.scale(worker=3).tick()

    assert scene.job.status.phase is Phase.SCALING
    assert {"j-worker-0", "j-worker-1"} <= {ref.name for ref in plan.delete}


def test_a_replacement_after_a_member_has_finished_joins_no_gang() -> None:
    scene = on_cluster(a_job().with_ps(1).with_workers(2), default="native")
    with_groups(scene, PodGroup(name="j-0", ours=True, scheduler="native"))
    scene.tick()
    scene.succeed("j-worker-0").lose("j-worker-1")

    (pod,) = scene.tick().pods

    assert "schedulingGroup" not in pod.manifest["spec"]


def test_a_gang_scheduler_that_the_cluster_lacks_is_told() -> None:
    builder = a_job().with_workers(1, template("volcano"))
    scene = on_cluster(builder, available=frozenset[str]())

    plan = scene.tick()

    assert plan.pods == ()
    assert scene.job.status.reason == "NoGangScheduler"
    assert plan.look_again is not None


def test_a_pod_that_a_lost_node_keeps_is_removed_without_it() -> None:
    scene = a_scene(a_job().with_workers(1), services=True).run()
    deadline = scene.job.status.start_time
    scene.change("j-worker-0", deleting=True, gone_by=deadline)

    plan = scene.tick(10)
    assert not [ref for ref in plan.delete if ref.force]
    assert plan.look_again is not None

    scene.change("j-worker-0", deleting=True, gone_by=deadline)
    (ref,) = [ref for ref in scene.tick(21).delete if ref.force]
    assert ref.name == "j-worker-0"
    assert scene.job.status.restarts == 0
