"""The job may go on: ask for what is missing, tell everybody where everybody is, follow a scaling.

Servers are asked for before workers, all in one pass. The environment is written once, when every
replica of its revision has an address, and never changed: another address or another count is
another revision, so what a pod saw is always exact.
"""

from __future__ import annotations

from regatta.api.job import Job, JobStatus, Phase
from regatta.controller import environment, labels
from regatta.controller.environment import Place
from regatta.controller.judge import Verdict
from regatta.controller.observe import Replica, World, observe
from regatta.controller.plan import (
    ChildRef,
    Event,
    Instant,
    NewEnvironment,
    NewPod,
    NewService,
    Plan,
)
from regatta.controller.pods import new_pod, place_of
from regatta.controller.policies import gang
from regatta.controller.policies.removal import remove
from regatta.controller.policies.scale import (
    first_size,
    follow_scaling,
    follow_templates,
    next_size,
)
from regatta.controller.policies.setting_up import until_too_long
from regatta.controller.policies.timers import soonest, until_restart
from regatta.controller.summary import summarise
from regatta.controller.world import PORTS_PER_REPLICA, meets_by_name


def advance(job: Job, world: World, verdict: Verdict, now: Instant) -> Plan:
    before = job
    job, edited = follow_templates(first_size(job, world), world)
    sized, world = job, _seen_anew(job, before, world)
    job, scaled = follow_scaling(job, world)
    world = _seen_anew(job, sized, world)
    status = summarise(job, world, verdict, now)
    pause = until_restart(job, now)
    pods = _pods(job, world) if pause is None else ()
    new_environments = _environments(job, world)
    known = world.children.environments | {made.revision for made in new_environments}
    return Plan(
        status=status,
        delete=remove(world.stale) + _outlived(job, world),
        environments=new_environments,
        services=_services(job, world) if pause is None else (),
        pods=pods,
        pod_groups=gang.new_groups(job, world),
        regroup=gang.changed_groups(job, world),
        touch=_touch(world, known),
        events=(*edited, *scaled, *_created(pods), *_transition(before.status.phase, status)),
        look_again=soonest(pause, verdict.look_again, until_too_long(world.own, now)),
    )


def _seen_anew(job: Job, former: Job, world: World) -> World:
    """A look through thousands of pods is not repeated for a job that has not changed."""
    return world if job is former else observe(job, world.children)


def _pods(job: Job, world: World) -> tuple[NewPod, ...]:
    missing = [new_pod(job, r, world) for r in world.replicas if _is_missing(r, world)]
    grown = next_size(job)
    missing += [new_pod(grown, r, world) for r in world.growth if _is_missing(r, world)]
    return tuple(missing)


def _is_missing(replica: Replica, world: World) -> bool:
    """A name that is still taken, by our own former pod or by anybody's, is waited for."""
    return replica.pod is None and not replica.done and replica.name not in world.taken


def _environments(job: Job, world: World) -> tuple[NewEnvironment, ...]:
    revision = job.status.revision
    if revision in world.children.environments:
        return ()
    places: dict[str, list[Place]] = {}
    for replica in world.replicas:
        pod = replica.pod
        if pod is None or pod.host is None or pod.revision != revision:
            return ()
        place = place_of(job, replica, world.children, host=pod.host)
        places.setdefault(replica.role, []).append(place)
    data = environment.shared(job, places)
    name = labels.environment_name(job, revision)
    manifest = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": name,
            "namespace": job.namespace,
            "labels": {**labels.of_job(job), labels.REVISION: str(revision)},
            "ownerReferences": labels.owned_by(job),
        },
        "immutable": True,
        "data": data,
    }
    return (NewEnvironment(name=name, revision=revision, data=data, manifest=manifest),)


def _services(job: Job, world: World) -> tuple[NewService, ...]:
    """One headless Service a pod, where peers are reached by name."""
    present = world.children.services
    if present is None or not meets_by_name(job, world.children.names_only):
        return ()
    return tuple(
        NewService(name=replica.name, manifest=_service(job, replica, world))
        for replica in (*world.replicas, *world.growth)
        if replica.name not in present
    )


def _service(job: Job, replica: Replica, world: World) -> dict[str, object]:
    base = world.children.ports.of(replica.ordinal, replica.role_number)
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": replica.name,
            "namespace": job.namespace,
            "labels": labels.of_job(job),
            "ownerReferences": labels.owned_by(job),
        },
        "spec": {
            "clusterIP": "None",
            # A name must resolve before its process listens: the peers start at the same time.
            "publishNotReadyAddresses": True,
            "selector": {labels.UPSTREAM_NAME: replica.name, labels.JOB: job.name},
            "ports": [
                {"name": f"p-{offset}", "port": base + offset}
                for offset in range(PORTS_PER_REPLICA)
            ],
        },
    }


def _outlived(job: Job, world: World) -> tuple[ChildRef, ...]:
    """What no replica needs any more: groups, environments, Services of a larger size."""
    children = world.children
    read = {pod.revision for pod in children.pods} | {job.status.revision}
    old = sorted(children.environments - read)
    named = meets_by_name(job, children.names_only)
    reached = {r.name for r in (*world.replicas, *world.growth)} if named else set()
    surplus = sorted((children.services or frozenset()) - reached - world.taken)
    return (
        *gang.outlived(job, children, ended=False),
        *(ChildRef(kind="ConfigMap", name=labels.environment_name(job, r)) for r in old),
        *(ChildRef(kind="Service", name=name) for name in surplus),
    )


def _touch(world: World, known: frozenset[int]) -> tuple[str, ...]:
    pods = (replica.pod for replica in world.replicas if replica.pod is not None)
    return tuple(p.name for p in pods if p.waits_for_environment and p.revision in known)


def _created(pods: tuple[NewPod, ...]) -> tuple[Event, ...]:
    if not pods:
        return ()
    names = ", ".join(pod.name for pod in pods[:4]) + (", ..." if len(pods) > 4 else "")
    noun = "pod" if len(pods) == 1 else "pods"
    return (Event(type="Normal", reason="Created", message=f"created {len(pods)} {noun}: {names}"),)


def _transition(before: Phase | None, status: JobStatus) -> tuple[Event, ...]:
    after = status.phase
    if before is after:
        return ()
    events = []
    if before is Phase.SUSPENDED:
        events.append(Event(type="Normal", reason="Resumed", message="resumed"))
    if after is Phase.STARTING:
        # One that ran and does so no more has a reason, such as an end after which it starts again.
        why = status.message if before is Phase.RUNNING else ""
        message = why or "every replica has its place; starting"
        events.append(Event(type="Normal", reason="Starting", message=message))
    if after is Phase.RUNNING:
        events.append(Event(type="Normal", reason="Running", message="all replicas run"))
    return tuple(events)
