"""Writes a plan into the store: status, stops and deletes, environments, pods, events.

Nothing is signalled or started here. A stop is an intention in its row before any process hears
of it, and the loop carries intentions out after the transaction is safe on disk.
"""

from __future__ import annotations

import uuid
from datetime import datetime

from regatta.api.job import Job
from regatta.controller.changes import deleted
from regatta.controller.plan import ChildRef, Instant, Plan
from regatta.controller.world import Exit
from regatta.engines.local.store.records import JobRecord, PodRecord
from regatta.engines.local.store.writes import Transaction

#: Why only the record of a run is left.
EXPIRED = "deleted with its logs: its time to live was over (ttlSecondsAfterFinished)"


def apply_plan(tx: Transaction, record: JobRecord, plan: Plan, now: Instant) -> bool:
    """True when children or status changed, so that the brain should look once more."""
    job = record.job
    if plan.status is not None:
        tx.set_status(job, plan.status)
    for ref in plan.stop:
        stop_pod(tx, tx.pod(ref.uid), now.wall)
    for ref in plan.delete:
        _delete(tx, job.uid, ref, now.wall)
    for environment in plan.environments:
        tx.add_environment(job.uid, environment)
    for pod in plan.pods:
        tx.add_pod(job.uid, str(uuid.uuid4()), pod, now.wall)
    for event in plan.events:
        tx.add_event(job.uid, event, now.wall)
    if plan.events:
        tx.trim_events(job.uid)
    if plan.delete_job:
        tx.note_removed(job.uid, EXPIRED)
        mark_deleting(tx, job, now.wall)
    return bool(
        plan.status is not None
        or plan.stop
        or plan.delete
        or plan.environments
        or plan.pods
        or plan.delete_job
    )


def stop_pod(tx: Transaction, pod: PodRecord | None, at: datetime) -> None:
    """Ask for its end. What was never meant to start has ended by that."""
    if pod is None or pod.over:
        return
    tx.intend_stop(pod.uid)
    if pod.run == 0:
        tx.set_exit(pod, Exit(code=None, reason="Stopped", message="it was never started"), at)


def delete_pod(tx: Transaction, pod: PodRecord | None, at: datetime) -> None:
    if pod is None or pod.gone:
        return
    tx.intend_delete(pod.uid)
    if pod.run == 0 and not pod.over:
        tx.set_exit(pod, Exit(code=None, reason="Deleted", message="it was never started"), at)


def mark_deleting(tx: Transaction, job: Job, at: datetime) -> None:
    if not job.deleting:
        tx.set_job(deleted(job, at))


def _delete(tx: Transaction, job_uid: str, ref: ChildRef, at: datetime) -> None:
    if ref.kind == "Pod":
        delete_pod(tx, tx.pod(ref.uid), at)
    elif ref.kind == "ConfigMap":
        tx.remove_environment(job_uid, ref.name)
    # A Service is never made here: replicas are reached by their addresses.
