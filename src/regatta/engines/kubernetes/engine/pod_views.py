"""A job's pods as doors show them: those that are there, and what is known of those that are not.

A pod that was cleaned away is gone from a cluster with its log. What a command has seen of it while
it followed the job, and what the job's own status remembers, is still shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from regatta.api.job import Job, RoleStatus
from regatta.controller import labels
from regatta.controller.observe import is_current, ordinal_of, pod_name
from regatta.controller.world import port_block
from regatta.engines.inventory import PodView
from regatta.engines.kubernetes.api import models
from regatta.engines.kubernetes.api.client import KubeClient
from regatta.engines.kubernetes.api.resources import PODS
from regatta.engines.kubernetes.objects import podstate
from regatta.engines.kubernetes.objects.children import Found, mains_of, observe_pod
from regatta.engines.kubernetes.objects.hostports import ports_of

NOTHING_ELSE = Found()


def selector_of(job: Job) -> str:
    return f"{labels.JOB}={job.name}"


async def list_pods(client: KubeClient, job: Job) -> list[models.Pod]:
    """Those that carry the job's uid, in the order of its roles and their indexes."""
    found = await _owned(client, job, selector_of(job))
    if not found and any(role.refs for role in job.status.roles().values()):
        # The former operator's pods have only its own labels.
        found = await _owned(client, job, labels.UPSTREAM_ROLE)
    order = {role: number for number, role in enumerate(job.spec.roles())}
    places = [(observe_pod(job, pod, NOTHING_ELSE), pod) for pod in found]
    places.sort(key=lambda both: (order.get(both[0].role, 99), both[0].index))
    return [pod for _, pod in places]


async def _owned(client: KubeClient, job: Job, selector: str) -> list[models.Pod]:
    listing = await client.list(PODS, models.Pod, namespace=job.namespace, label_selector=selector)
    return [main_first(job, pod) for pod in listing.items if pod.metadata.controller_uid == job.uid]


def main_first(job: Job, pod: models.Pod) -> models.Pod:
    """A replica's log and state are those of its first container."""
    role = observe_pod(job, pod, NOTHING_ELSE).role
    return podstate.main_first(pod, mains_of(job).get(role, ""))


def pod_view(job: Job, pod: models.Pod) -> PodView:
    seen = observe_pod(job, pod, NOTHING_ELSE)
    main = podstate.main_container(pod)
    state = main.state if main else models.ContainerState()
    started = state.running or state.terminated
    memory = job.status.roles().get(seen.role, RoleStatus())
    ended = seen.exit
    return PodView(
        name=seen.name,
        uid=seen.uid,
        role=seen.role,
        index=seen.index,
        attempt=seen.attempt,
        phase=seen.phase.value,
        current=is_current(seen, memory),
        node=pod.spec.node_name,
        address=pod.status.pod_ip,
        ports=ports_of_replica(job, seen.role, seen.index),
        restarts=main.restart_count if main else 0,
        exit_code=ended.code if ended else None,
        reason=_reason(seen.stopping, ended.reason if ended else "", pod, state),
        message=(ended.message if ended else "") or seen.waiting,
        created_at=pod.metadata.creation_timestamp,
        started_at=started.started_at if started else None,
        finished_at=ended.finished_at if ended else None,
        stopping=(seen.stopping or seen.deleting) and not seen.phase.over,
    )


def gone(view: PodView) -> PodView:
    """One that was there and is no more."""
    return replace(view, current=False, stopping=False)


def going(view: PodView) -> PodView:
    """One that is no more, and whose last word is still on its way."""
    return replace(view, current=False, stopping=True)


def remembered(job: Job, shown: Iterable[PodView]) -> Iterator[PodView]:
    """Replicas of which only the job's own status still tells how they ended."""
    known = {(view.role, view.index) for view in shown}
    failure = job.status.failure
    for role, status in job.status.roles().items():
        for index in status.done:
            if (role, index) not in known:
                yield replace(_removed(job, role, index), phase="Succeeded", exit_code=0)
        if failure is not None and failure.role == role and (role, failure.index) not in known:
            yield replace(
                _removed(job, role, failure.index),
                phase="Failed",
                exit_code=failure.exit_code,
                message=failure.message,
                finished_at=failure.finished_at,
            )


def _removed(job: Job, role: str, index: int) -> PodView:
    return PodView(
        name=pod_name(job, role, index),
        uid="",
        role=role,
        index=index,
        attempt=job.status.roles()[role].attempt,
        phase="",
        current=False,
        reason="Removed",
    )


def _reason(stopped: bool, why: str, pod: models.Pod, state: models.ContainerState) -> str:
    if stopped and why:
        return "Stopped"
    return why or podstate.init_trouble(pod) or (state.waiting.reason if state.waiting else "")


def ports_of_replica(job: Job, role: str, index: int) -> tuple[int, int] | None:
    roles = list(job.spec.roles())
    if role not in roles or index < 0:
        return None
    first = ports_of(job).of(ordinal_of(job, role, index), roles.index(role))
    return port_block(first)
