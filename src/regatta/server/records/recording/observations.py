"""A job and its replicas as an engine shows them, as rows of the records. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from regatta.api.job import Job, JobStatus, Phase, encode
from regatta.api.quantity import resources
from regatta.engines.inventory import PodView, RunView
from regatta.server.openpai_states import ending_of, state_of, sub_state_of
from regatta.server.records.job_lists import searched
from regatta.server.records.job_rows import ReplicaRow
from regatta.server.records.moments import millis

#: Of what a replica said last, as much as Kubernetes keeps.
LONGEST_MESSAGE = 4096
OVER = ("Succeeded", "Failed")


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """A job as it was seen. `pods`: None where they could not be looked at."""

    job: Job
    pods: tuple[PodView, ...] | None = None

    @property
    def settled(self) -> bool:
        """Nothing more will come of it: it is over, and so is every replica."""
        return self.job.finished and self.pods is not None and all(map(is_over, self.pods))


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """What the records had of a job before."""

    execution_type: str = "START"
    retries_platform: int = 0
    retries_resource: int = 0
    disrupted_at: int | None = None


def is_over(pod: PodView) -> bool:
    ended = pod.finished_at is not None or pod.phase in OVER
    return ended or not (pod.current or pod.stopping)


def fingerprint(job: Job) -> str:
    """Changes when something does that is written down: not with each step of a training."""
    status = replace(job.status, progress=None, heartbeat_awake=None, started_awake=None)
    shown = (status, job.metadata.generation, job.metadata.deletion_timestamp, job.spec.run_policy)
    return hashlib.sha256(encode(shown)).hexdigest()[:32]


def job_values(job: Job, before: Known) -> dict[str, Any]:
    """What changes of a job's row."""
    status, roles = job.status, job.spec.roles()
    stop_asked = before.execution_type == "STOP" or job.spec.run_policy.abort
    new = [at for at in map(millis, status.disruptions) if at > (before.disrupted_at or 0)]
    platform = before.retries_platform + len(new)
    return {
        "engine_uid": job.uid,
        "namespace": job.namespace,
        "engine_name": job.name,
        "submit_state": "accepted",
        "execution_type": "STOP" if stop_asked else "START",
        "phase": str(status.phase or ""),
        "state": state_of(status, stop_asked=stop_asked),
        "sub_state": sub_state_of(status),
        "reason": status.reason,
        "message": last_of(status.message),
        "attempt": status.attempt,
        "retries": status.restarts + platform + before.retries_resource,
        "retries_user": status.restarts,
        "retries_platform": platform,
        "disrupted_at": max([before.disrupted_at or 0, *new]) or None,
        "total_tasks": job.spec.replicas,
        "total_roles": len(roles),
        "total_gpus": sum(_gpus(role.template) * role.replicas for role in roles.values()),
        "created_at": millis(job.metadata.creation_timestamp),
        "launched_at": millis(status.start_time),
        "completed_at": millis(status.completion_time) if job.finished else None,
        **msgspec.structs.asdict(ending_of(status)),
    }


def unowned(job: Job, now: int) -> dict[str, Any]:
    """What else a row needs of a job that did not come through this server."""
    policy = job.spec.scheduling_policy
    cluster = policy.queue if policy is not None else ""
    return {
        "id": job.uid,
        "username": "",
        "name": job.name,
        "virtual_cluster": cluster,
        "submitted_at": millis(job.metadata.creation_timestamp) or now,
        "search": searched("", job.name, cluster),
    }


def run_values(run: RunView) -> dict[str, Any]:
    """The same of a job of which only an engine's history still tells, once it has ended."""
    phase = Phase(run.phase)
    status = JobStatus(phase=phase, reason=run.reason, message=run.message)
    ending = ending_of(status)
    return {
        "phase": str(phase),
        "state": state_of(status),
        "sub_state": sub_state_of(status),
        "reason": run.reason,
        "message": last_of(run.message),
        "created_at": millis(run.created_at),
        "launched_at": millis(run.started_at),
        "completed_at": millis(run.ended_at),
        **msgspec.structs.asdict(ending),
    }


def has_ended(run: RunView) -> bool:
    return run.ended_at is not None and run.phase in {phase.value for phase in Phase if phase.final}


def replica_values(pod: PodView, now: int) -> dict[str, Any]:
    first, last = pod.ports or (None, None)
    return {
        # Of one that is gone a cluster may remember the end and not the uid.
        "uid": pod.uid or f"{pod.role}-{pod.index}-{pod.attempt}",
        "attempt": pod.attempt,
        "role": pod.role,
        "replica_index": pod.index,
        "name": pod.name,
        "phase": pod.phase,
        "node": pod.node,
        "address": pod.address,
        "first_port": first,
        "last_port": last,
        "gpus": ",".join(pod.gpus),
        "restarts": pod.restarts,
        "exit_code": pod.exit_code,
        "reason": pod.reason,
        "message": last_of(pod.message),
        "created_at": millis(pod.created_at),
        "started_at": millis(pod.started_at),
        "finished_at": millis(pod.finished_at),
        "last_seen_at": now,
    }


def attempt_values(job: Job, seen: Sequence[ReplicaRow], now: int) -> list[dict[str, Any]]:
    """Every attempt as its replicas tell it: those that ended, each with who failed first, and the
    present one with the job's own word."""
    present = job.status.attempt
    begins = {number: _begin(seen, number) for number in range(present + 1)}
    rows = []
    for number in range(present):
        mine = [replica for replica in seen if replica.attempt == number]
        ended = min((at for n, at in begins.items() if at and n > number), default=now)
        row = _attempt(number, begins[number], ended, "Restarted")
        failed = [replica for replica in mine if replica.phase == "Failed"]
        if failed:
            row |= _blame(min(failed, key=lambda replica: replica.finished_at or now))
        rows.append(row)
    status = job.status
    last = _attempt(present, begins[present] or millis(status.start_time), None, "")
    if job.finished:
        last |= {
            "ended_at": millis(status.completion_time),
            "outcome": str(status.phase),
            "reason": status.reason,
            "message": last_of(status.message),
        }
        if status.phase is Phase.FAILED and (failure := status.failure) is not None:
            last |= {
                "blamed_role": failure.role,
                "blamed_index": failure.index,
                "exit_code": failure.exit_code,
            }
    return [*rows, last]


def last_of(said: str) -> str:
    """The end of what was said, within bounds."""
    raw = said.encode(errors="replace")
    return said if len(raw) <= LONGEST_MESSAGE else raw[-LONGEST_MESSAGE:].decode(errors="ignore")


def _attempt(number: int, began: int | None, ended: int | None, outcome: str) -> dict[str, Any]:
    return {
        "number": number,
        "started_at": began,
        "ended_at": ended,
        "outcome": outcome,
        "reason": "",
        "message": "",
        "blamed_role": None,
        "blamed_index": None,
        "exit_code": None,
    }


def _blame(replica: ReplicaRow) -> dict[str, Any]:
    return {
        "reason": replica.reason,
        "message": replica.message,
        "blamed_role": replica.role,
        "blamed_index": replica.replica_index,
        "exit_code": replica.exit_code,
    }


def _begin(seen: Iterable[ReplicaRow], number: int) -> int | None:
    return min((r.created_at for r in seen if r.attempt == number and r.created_at), default=None)


def _gpus(template: dict[str, Any]) -> int:
    try:
        return resources(template).gpus
    except ValueError:  # a cluster may hold what no door of ours would have let in
        return 0
