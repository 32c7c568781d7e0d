"""What the brain is shown of a local job: rows of the store as children."""

from __future__ import annotations

from collections.abc import Iterable

from regatta.api.job import Progress
from regatta.controller.world import Children, Exit, Pod
from regatta.engines.local.scheduling.reservations import ports_of
from regatta.engines.local.store.records import JobRecord, PodRecord, Reservation


def children(
    record: JobRecord,
    pods: Iterable[PodRecord],
    revisions: frozenset[int],
    reservation: Reservation | None,
    progress: Progress | None = None,
    heartbeat: float | None = None,
) -> Children:
    return Children(
        pods=tuple(observe_pod(pod, record.waiting) for pod in pods if not pod.gone),
        environments=revisions,
        services=None,  # a local replica is reached by its address in every intranet mode
        ports=ports_of(reservation),
        # Pods carry their ports: none can be made before the job has them.
        admitted=reservation is not None,
        not_admitted_for=record.waiting,
        hears_progress=True,
        progress=progress,
        heartbeat_awake=heartbeat,
    )


def observe_pod(pod: PodRecord, queue_says: str) -> Pod:
    return Pod(
        name=pod.name,
        uid=pod.uid,
        role=pod.role,
        index=pod.index,
        attempt=pod.attempt,
        revision=pod.revision,
        phase=pod.phase,
        scheduled=pod.bound,
        host=pod.address or None,
        waiting=_waiting(pod, queue_says),
        exit=exit_of(pod),
        disruption=pod.disruption,
        stopping=pod.stopping,
        deleting=pod.deleting,
        waits_for_environment=pod.bound and pod.run == 0 and not pod.over,
    )


def _waiting(pod: PodRecord, queue_says: str) -> str:
    if pod.over:
        return ""
    if not pod.bound:
        return queue_says
    return f"{pod.name}: {pod.reason}: {pod.message}" if pod.reason else ""


def exit_of(pod: PodRecord) -> Exit | None:
    if not pod.over:
        return None
    return Exit(
        code=pod.exit_code, reason=pod.reason, message=pod.message, finished_at=pod.finished_at
    )
