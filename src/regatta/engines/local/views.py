"""What doors are shown of pods, of what they use, and of the machine."""

from __future__ import annotations

from collections.abc import Mapping

from regatta.api.job import Job, RoleStatus
from regatta.api.quantity import limits
from regatta.controller.observe import is_current
from regatta.engines.inventory import NodeView, PodView, ReplicaUse
from regatta.engines.local.children import observe_pod
from regatta.engines.local.replicas.runtime import RunState, Usage
from regatta.engines.local.scheduling.ledger import Ledger, need_of
from regatta.engines.local.scheduling.machine import Machine
from regatta.engines.local.store.records import JobRecord, PodRecord


def pod_view(
    record: JobRecord, pod: PodRecord, state: RunState | None, use: Usage | None
) -> PodView:
    waiting = "" if pod.bound or pod.over else record.waiting
    return PodView(
        name=pod.name,
        uid=pod.uid,
        role=pod.role,
        index=pod.index,
        attempt=pod.attempt,
        phase=pod.phase.value,
        current=_is_current(record.job, pod),
        address=pod.address,
        ports=pod.ports,
        gpus=pod.gpus,
        pid=state.pid if state else None,
        restarts=max(pod.restarts, state.restarts if state else 0),
        exit_code=pod.exit_code,
        reason=pod.reason,
        message=pod.message or waiting,
        created_at=pod.created_at,
        started_at=pod.started_at,
        finished_at=pod.finished_at,
        stopping=pod.stopping and not pod.over,
        cpu_percent=use.cpu_percent if use else None,
        memory_bytes=use.memory_bytes if use else None,
        only_counted=state.only_counted if state else "",
    )


def node_view(machine: Machine, ledger: Ledger, use: Usage) -> NodeView:
    """This machine, which is its only node and needs no name."""
    held = ledger.held()
    return NodeView(
        name="",
        cpus=machine.cpus,
        cpus_held=held.millicores / 1000,
        cpus_used=_cpus(use, machine.cpus),
        memory_bytes=machine.memory,
        memory_held=held.memory,
        memory_used=use.memory_bytes,
        gpus=len(machine.gpus),
        gpus_held=held.gpus,
        pods=machine.pods,
        pods_held=held.pods,
    )


def replica_use(job: Job, pod: PodRecord, use: Usage | None) -> ReplicaUse:
    template = job.spec.roles()[pod.role].template
    asked, most = need_of(template), limits(template)
    return ReplicaUse(
        namespace=job.namespace,
        job=job.name,
        replica=f"{pod.role}-{pod.index}",
        state=pod.phase.value,
        cpus=asked.millicores / 1000,
        memory_bytes=asked.memory,
        gpus=asked.gpus,
        gpu_ids=pod.gpus,
        cpus_used=_cpus(use),
        memory_used=use.memory_bytes if use else None,
        cpus_limit=most.cpu or None,
        memory_limit=most.memory or None,
    )


def _cpus(use: Usage | None, of: float = 1.0) -> float | None:
    return None if use is None or use.cpu_percent is None else use.cpu_percent / 100 * of


def latest_per_replica(pods: list[PodRecord]) -> dict[tuple[str, int], list[PodRecord]]:
    """Pods of each replica, newest first."""
    replicas: dict[tuple[str, int], list[PodRecord]] = {}
    for pod in reversed(pods):
        replicas.setdefault((pod.role, pod.index), []).append(pod)
    return replicas


def _is_current(job: Job, pod: PodRecord) -> bool:
    roles: Mapping[str, RoleStatus] = job.status.roles()
    memory = roles.get(pod.role, RoleStatus())
    return not pod.gone and is_current(observe_pod(pod, ""), memory)
