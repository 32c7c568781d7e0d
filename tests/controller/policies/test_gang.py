"""Gangs on a cluster: whose PodGroup, when it is made, followed and removed."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from regatta.api.job import (
    CleanPodPolicy,
    Intranet,
    JobStatus,
    Phase,
    RestartScope,
    RoleStatus,
    SchedulingPolicy,
)
from regatta.controller import labels
from regatta.controller.observe import observe
from regatta.controller.policies.gang import join
from regatta.controller.world import Children, Gangs, Pod, PodGroup, PodPhase
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


def a_pod(**fields: Any) -> Pod:
    return Pod(name="j-worker-0", uid="p", role="worker", index=0, **fields)


def with_policy(scene: Scene, **policy: Any) -> Scene:
    spec = replace(scene.job.spec, scheduling_policy=SchedulingPolicy(**policy))
    scene.job = replace(scene.job, spec=spec)
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


def test_volcano_is_told_all_about_a_member() -> None:
    scene = on_cluster(a_job().with_workers(1), default="volcano")
    with_groups(scene, PodGroup(name="j", phase="Inqueue"))
    (pod,) = scene.tick().pods
    expected = {
        "kubectl.kubernetes.io/default-container": "main",
        "paddle-resource": "worker",
        "scheduling.k8s.io/group-name": "j",
        "volcano.sh/task-spec": "worker",
        "volcano.sh/job-name": "j",
        "volcano.sh/job-version": "0",
        "volcano.sh/queue-name": "",
    }
    assert pod.manifest["metadata"]["annotations"] == expected

    scene = with_policy(on_cluster(a_job().with_workers(1), default="volcano"), queue="fast")
    (pod,) = with_groups(scene, PodGroup(name="j", phase="Inqueue")).tick().pods
    assert pod.manifest["metadata"]["annotations"] == {**expected, "volcano.sh/queue-name": "fast"}


#: What a template names, and the group that is then made where volcano is the cluster's default.
SCHEDULERS: dict[str, tuple[dict[str, Any], int]] = {
    "none": ({"spec": {"containers": []}}, 1),
    "none, for want of a spec": ({}, 1),
    "nothing": (template(""), 1),
    "kubernetes' own by name": (template("default-scheduler"), 1),
    "volcano": (template("volcano"), 1),
    "another": (template("mine"), 0),
}


@pytest.mark.parametrize(("named", "groups"), SCHEDULERS.values(), ids=SCHEDULERS)
def test_the_clusters_gangs_are_for_jobs_that_name_no_other_scheduler(
    named: dict[str, Any], groups: int
) -> None:
    plan = on_cluster(a_job().with_workers(1, named), default="volcano").tick()

    assert len(plan.pod_groups) == groups


def test_where_there_are_no_gangs_no_job_is_one() -> None:
    plan = a_scene(a_job().with_workers(1, template("volcano")), services=True).tick()

    assert (len(plan.pods), plan.pod_groups) == (1, ())


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
    asked = PodGroup(name="j", ours=True, min_member=3, queue="q", priority_class="high")
    assert with_groups(scene, asked).tick().regroup == ()


@pytest.mark.parametrize(
    ("scheduler", "api", "name", "spec"),
    [
        ("volcano", "scheduling.volcano.sh/v1beta1", "j", {"minMember": 2}),
        (
            "native",
            "scheduling.k8s.io/v1alpha2",
            "j-0",
            {"schedulingPolicy": {"gang": {"minCount": 2}}},
        ),
    ],
)
def test_a_group_is_the_jobs_own(scheduler: str, api: str, name: str, spec: dict[str, Any]) -> None:
    scene = on_cluster(a_job().with_workers(2), default=scheduler)

    (group,) = scene.tick().pod_groups

    assert (group.name, group.scheduler) == (name, scheduler)
    assert group.manifest == {
        "apiVersion": api,
        "kind": "PodGroup",
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": labels.of_job(scene.job),
            "ownerReferences": labels.owned_by(scene.job),
        },
        "spec": spec,
    }


def test_a_policy_without_queue_or_priority_asks_for_neither() -> None:
    scene = with_policy(on_cluster(a_job().with_workers(2), default="volcano"), min_available=1)

    (group,) = scene.tick().pod_groups

    assert group.manifest["spec"] == {"minMember": 1}


def test_anothers_group_of_the_same_name_is_not_the_gang() -> None:
    scene = on_cluster(a_job().with_workers(1), default="native")
    with_groups(scene, PodGroup(name="j-0", scheduler="volcano"))

    assert [group.name for group in scene.tick().pod_groups] == ["j-0"]


def test_what_a_group_says_of_a_job_that_has_pods_holds_nothing_back() -> None:
    scene = on_cluster(a_job().with_workers(2), default="volcano")
    with_groups(scene, PodGroup(name="j", phase="Inqueue", min_member=2))
    assert len(scene.tick().pods) == 2

    with_groups(scene, PodGroup(name="j", phase="Pending")).lose("j-worker-1")

    assert [pod.name for pod in scene.tick().pods] == ["j-worker-1"]


def test_our_group_stays_while_the_job_runs() -> None:
    scene = on_cluster(a_job().with_workers(1), default="volcano")
    with_groups(scene, PodGroup(name="j", ours=True, phase="Inqueue", min_member=1)).run()

    assert scene.tick().delete == ()


@pytest.mark.parametrize("clean", CleanPodPolicy)
def test_our_group_goes_with_a_completed_job_whatever_becomes_of_its_pods(
    clean: CleanPodPolicy,
) -> None:
    scene = on_cluster(a_job().with_workers(1).clean(clean), default="volcano")
    with_groups(scene, PodGroup(name="j", ours=True, phase="Inqueue", min_member=1)).run()

    plan = scene.succeed("j-worker-0").tick()

    assert [ref.name for ref in plan.delete if ref.kind == "PodGroup"] == ["j"]


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
    assert scene.tick().regroup == (), "they cannot be changed"
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


@pytest.mark.parametrize("collected", [False, True], ids=["its pod is there", "its pod is gone"])
@pytest.mark.parametrize("done", [True, False], ids=["one is done", "all run"])
def test_a_replica_that_starts_again_alone_waits_for_no_gang(done: bool, collected: bool) -> None:
    policy = {"backoff_limit": 1, "restart_scope": RestartScope.REPLICA}
    builder = a_job().with_ps(1).with_workers(2).intranet(Intranet.SERVICE).policy(**policy)
    scene = on_cluster(builder, default="native")
    with_groups(scene, PodGroup(name="j-0", ours=True, scheduler="native"))
    assert all("schedulingGroup" in pod.manifest["spec"] for pod in scene.tick().pods)
    scene.run()
    if done:
        scene.succeed("j-worker-0").tick()
    if done and collected:
        scene.lose("j-worker-0").tick()
    scene.fail("j-worker-1", 1).tick()

    (pod,) = scene.tick(5).pods

    assert (pod.name, pod.attempt) == ("j-worker-1", 1)
    assert "schedulingGroup" not in pod.manifest["spec"]


#: What there is of the first of two workers, and whether the second joins a gang.
FIRST: dict[str, tuple[JobStatus, tuple[Pod, ...], bool]] = {
    "nothing": (JobStatus(), (), True),
    "a pod of this attempt": (JobStatus(), (a_pod(),), True),
    "a pod that has ended": (JobStatus(), (a_pod(phase=PodPhase.FAILED),), False),
    "a pod of an earlier attempt": (JobStatus(attempt=1), (a_pod(),), False),
    "its success": (JobStatus(worker=RoleStatus(done=(0,))), (), False),
}


@pytest.mark.parametrize(("status", "pods", "joins"), FIRST.values(), ids=FIRST)
def test_only_what_starts_as_a_whole_is_a_gang(
    status: JobStatus, pods: tuple[Pod, ...], joins: bool
) -> None:
    job = replace(a_job().with_workers(2).obj(), status=status)
    gangs = Gangs(available=BOTH, default="native")
    world = observe(job, Children(pods=pods, gangs=gangs))

    made = join(job, world, "worker", {"metadata": {}, "spec": {}})

    assert ("schedulingGroup" in made["spec"]) is joins


def test_what_is_left_to_make_of_an_attempt_joins_its_gang() -> None:
    scene = on_cluster(a_job().with_workers(2), default="native")
    scene.tick()
    with_groups(scene, PodGroup(name="j-0", ours=True, scheduler="native")).lose("j-worker-1")

    (pod,) = scene.tick().pods

    assert pod.manifest["spec"]["schedulingGroup"] == {"podGroupName": "j-0"}


def test_a_gang_scheduler_that_the_cluster_lacks_is_told() -> None:
    builder = a_job().with_workers(1, template("volcano"))
    scene = on_cluster(builder, available=frozenset[str]())

    plan = scene.tick()

    assert (plan.pods, plan.pod_groups) == ((), ())
    assert (scene.job.status.phase, scene.job.status.reason) == (Phase.PENDING, "NoGangScheduler")
    assert "remove schedulerName: volcano" in scene.job.status.message
    assert plan.look_again == 30


def test_a_cluster_that_has_no_gangs_of_its_own_yet_is_told_so() -> None:
    scene = on_cluster(a_job().with_workers(1), default="native", available=frozenset[str]())

    assert scene.tick().pods == ()

    assert "--scheduling=native needs" in scene.job.status.message


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
