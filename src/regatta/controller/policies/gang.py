"""All pods or none, where the cluster has a scheduler that can promise it.

Volcano knows a job's gang by a PodGroup of the job's name: a user's own is adopted as it is, else
one is made, changed with the job and removed when it ends. Kubernetes' own PodGroups
cannot be changed, so each attempt has one.
"""

from __future__ import annotations

from typing import Any

from regatta.api.job import Job
from regatta.controller import labels
from regatta.controller.observe import World
from regatta.controller.plan import ChildRef, NewPodGroup, Regroup
from regatta.controller.world import Children, PodGroup

VOLCANO = "volcano"
NATIVE = "native"

#: While a group is in one of these, Volcano has not let it into its queue.
_NOT_ADMITTED = ("", "Pending")


def scheduler_of(job: Job, children: Children) -> str:
    """Volcano, Kubernetes' own, or neither. `schedulerName: volcano` on one role is enough."""
    if children.gangs is None:
        return ""
    templates = (role.template for role in job.spec.roles().values())
    named = {(template.get("spec") or {}).get("schedulerName") for template in templates}
    if VOLCANO in named:
        return VOLCANO
    if named - {None, "", "default-scheduler"}:
        return ""  # somebody else's scheduler places this job
    return children.gangs.default


def group_name(job: Job, scheduler: str) -> str:
    return job.name if scheduler == VOLCANO else f"{job.name}-{job.status.attempt}"


def find_group(job: Job, children: Children) -> PodGroup | None:
    scheduler = scheduler_of(job, children)
    groups = children.gangs.groups if children.gangs else ()
    name = group_name(job, scheduler)
    return next((g for g in groups if g.name == name and g.scheduler == scheduler), None)


def missing_scheduler(job: Job, children: Children) -> str:
    """The gang scheduler that the job needs and the cluster does not have."""
    scheduler = scheduler_of(job, children)
    available = children.gangs.available if children.gangs else frozenset()
    return "" if scheduler in available else scheduler


def waits_for_admission(job: Job, world: World) -> bool:
    """Only Volcano admits, and only an attempt that has no pods yet waits for it.

    Later the group's phase says other things: `Unknown` while a replacement is missing.
    """
    if scheduler_of(job, world.children) != VOLCANO or any(r.pod for r in world.replicas):
        return False
    group = find_group(job, world.children)
    return group is None or group.phase in _NOT_ADMITTED


def new_groups(job: Job, world: World) -> tuple[NewPodGroup, ...]:
    scheduler = scheduler_of(job, world.children)
    if not scheduler or missing_scheduler(job, world.children):
        return ()
    if find_group(job, world.children) is not None:
        return ()
    manifest = _volcano(job) if scheduler == VOLCANO else _native(job)
    name = group_name(job, scheduler)
    return (NewPodGroup(name=name, scheduler=scheduler, manifest=manifest),)


def changed_groups(job: Job, world: World) -> tuple[Regroup, ...]:
    """Volcano's group follows the job, whether it runs or still waits to be let in."""
    group = find_group(job, world.children)
    if group is None or not group.ours or group.scheduler != VOLCANO:
        return ()
    present = {
        "minMember": group.min_member,
        "queue": group.queue,
        "priorityClassName": group.priority_class,
        "minResources": group.min_resources,
    }
    wanted = _volcano_spec(job)
    change = {key: value for key, value in wanted.items() if present[key] != value}
    if group.min_resources and "minResources" not in wanted:
        change["minResources"] = None
    elif "minResources" in change:
        gone = group.min_resources.keys() - change["minResources"].keys()
        change["minResources"] |= dict.fromkeys(gone)
    return (Regroup(name=group.name, uid=group.uid, spec=change),) if change else ()


def outlived(job: Job, children: Children, *, ended: bool) -> tuple[ChildRef, ...]:
    """Groups of ours that hold a queue's quota for nothing. A user's own stays."""
    groups = children.gangs.groups if children.gangs else ()
    kept = None if ended else find_group(job, children)
    return tuple(
        ChildRef(kind="PodGroup", name=group.name, uid=group.uid)
        for group in groups
        if group.ours and group != kept
    )


def join(job: Job, world: World, role: str, manifest: dict[str, Any]) -> dict[str, Any]:
    """Make a pod a member of its gang."""
    scheduler = scheduler_of(job, world.children)
    if scheduler == VOLCANO:
        policy = job.spec.scheduling_policy
        manifest["spec"].setdefault("schedulerName", VOLCANO)
        manifest["metadata"]["annotations"] |= {
            "scheduling.k8s.io/group-name": job.name,
            "volcano.sh/task-spec": role,
            "volcano.sh/job-name": job.name,
            "volcano.sh/job-version": "0",
            "volcano.sh/queue-name": policy.queue if policy else "",
        }
    elif scheduler == NATIVE and _starts_as_a_whole(job, world):
        group = {"podGroupName": group_name(job, NATIVE)}
        manifest["spec"].setdefault("schedulingGroup", group)
    return manifest


def _starts_as_a_whole(job: Job, world: World) -> bool:
    """A replacement for one of many would wait for ever for a gang of its attempt: those that have
    ended will not come again, and those that run are of an earlier one."""
    return not any(
        r.done or (r.pod is not None and (r.pod.phase.over or r.pod.attempt < job.status.attempt))
        for r in world.replicas
    )


def _members(job: Job) -> int:
    policy = job.spec.scheduling_policy
    return (policy.min_available if policy else None) or job.spec.replicas


def _volcano(job: Job) -> dict[str, Any]:
    return _group(job, "scheduling.volcano.sh/v1beta1", job.name, _volcano_spec(job))


def _volcano_spec(job: Job) -> dict[str, Any]:
    policy = job.spec.scheduling_policy
    spec: dict[str, Any] = {"minMember": _members(job)}
    if policy and policy.queue:
        spec["queue"] = policy.queue
    if policy and policy.priority_class:
        spec["priorityClassName"] = policy.priority_class
    if policy and policy.min_resources:
        spec["minResources"] = dict(policy.min_resources)
    return spec


def _native(job: Job) -> dict[str, Any]:
    spec = {"schedulingPolicy": {"gang": {"minCount": _members(job)}}}
    return _group(job, "scheduling.k8s.io/v1alpha2", group_name(job, NATIVE), spec)


def _group(job: Job, api: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": api,
        "kind": "PodGroup",
        "metadata": {
            "name": name,
            "namespace": job.namespace,
            "labels": labels.of_job(job),
            "ownerReferences": labels.owned_by(job),
        },
        "spec": spec,
    }
