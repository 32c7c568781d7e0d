"""Pods that have their place and get no further: how long is too long, and what they wait for.

Their node knows best and says so in events, which are not shown to the brain. What it can tell
without them: which objects the job's own volumes name, and which of those do not exist.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from regatta.api.job import Job
from regatta.controller.plan import Instant
from regatta.controller.policies.timers import soonest
from regatta.controller.world import Children, Pod

#: More than a node needs to mount what is there and to give a pod its address.
PATIENCE_SECONDS = 20.0
#: Seconds between looks at a pod that took longer: what it waits for may be there by then.
LOOK_AGAIN_SECONDS = 30.0

CONFIG_MAP = "ConfigMap"


class Need(msgspec.Struct, frozen=True):
    """An object without which a pod's volume cannot be mounted."""

    kind: str
    name: str
    volume: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name} (volume {self.volume})"


def config_maps_in_doubt(job: Job, children: Children, now: Instant) -> frozenset[str]:
    """Those whose absence would explain why a pod takes so long. Nobody may look at Secrets."""
    return frozenset(
        need.name
        for pod in _late(children.pods, now)
        for need in needs_of(job, pod.role)
        if need.kind == CONFIG_MAP and pod.taken_up
    )


def why_not_set_up(job: Job, pods: Iterable[Pod], children: Children, now: Instant) -> str:
    """What keeps the first pod that takes too long; one whose reason is known comes first."""
    late = list(_late(pods, now))
    for pod in late:
        absent = [n for n in needs_of(job, pod.role) if _is_missing(n, children)]
        if pod.taken_up and absent:
            return _without(job, pod, absent)
    for pod in late:
        return _slow(job, pod) if pod.taken_up else _not_taken(job, pod)
    return ""


def until_too_long(pods: Iterable[Pod], now: Instant) -> float | None:
    waits = (PATIENCE_SECONDS - held for _, held in _held(pods, now))
    return soonest(*(left if left > 0 else LOOK_AGAIN_SECONDS for left in waits))


def needs_of(job: Job, role: str) -> tuple[Need, ...]:
    """What the volumes that a role's pods mount must have, in the order of its template."""
    spec = job.spec.roles().get(role)
    pod = (spec.template.get("spec") or {}) if spec is not None else {}
    mounted = set(_mounted(pod))
    volumes = [v for v in pod.get("volumes") or () if v.get("name") in mounted]
    return tuple(need for volume in volumes for need in _of_volume(volume))


def _mounted(pod: dict[str, Any]) -> Iterator[str]:
    """Names of volumes that a container wants: a node leaves the others alone."""
    for container in (*(pod.get("initContainers") or ()), *(pod.get("containers") or ())):
        for field in ("volumeMounts", "volumeDevices"):
            for mount in container.get(field) or ():
                yield mount.get("name")


def _of_volume(volume: dict[str, Any]) -> Iterator[Need]:
    projected = (volume.get("projected") or {}).get("sources") or ()
    for source in (volume, *projected):
        for kind, field, name in (
            (CONFIG_MAP, "configMap", "name"),
            ("Secret", "secret", "name" if source is not volume else "secretName"),
            ("PersistentVolumeClaim", "persistentVolumeClaim", "claimName"),
        ):
            named = source.get(field) or {}
            if named.get(name) and not named.get("optional"):
                yield Need(kind, named[name], volume["name"])


def _held(pods: Iterable[Pod], now: Instant) -> Iterator[tuple[Pod, float]]:
    for pod in pods:
        if pod.held_since is not None:
            yield pod, (now.wall - pod.held_since).total_seconds()


def _late(pods: Iterable[Pod], now: Instant) -> Iterator[Pod]:
    return (pod for pod, held in _held(pods, now) if held >= PATIENCE_SECONDS)


def _is_missing(need: Need, children: Children) -> bool:
    return need.kind == CONFIG_MAP and need.name in children.missing


def _without(job: Job, pod: Pod, absent: list[Need]) -> str:
    one = len(absent) == 1
    do, it = ("does", "it") if one else ("do", "them")
    listed = " and ".join(map(str, absent))
    return (
        f"{pod.name} cannot start: {listed} {do} not exist in namespace {job.namespace}; "
        f"create {it}"
    )


def _slow(job: Job, pod: Pod) -> str:
    unseen = [str(need) for need in needs_of(job, pod.role) if need.kind != CONFIG_MAP]
    doubt = f"; its volumes need {' and '.join(unseen)}: is that there?" if unseen else "."
    return (
        f"node {pod.node} has been setting up {pod.name} for more than {PATIENCE_SECONDS:g} s"
        f"{doubt} `kubectl -n {job.namespace} describe pod {pod.name}` says what it waits for"
    )


def _not_taken(job: Job, pod: Pod) -> str:
    template = job.spec.roles()[pod.role].template.get("spec") or {}
    named = template.get("nodeName") == pod.node
    which = f", which nodeName of role {pod.role} names," if named else ""
    whether = "whether there is one of that name" if named else "how it is"
    return (
        f"node {pod.node}{which} has not taken {pod.name} for more than {PATIENCE_SECONDS:g} s: "
        f"`kubectl get node {pod.node}` says {whether}"
    )
