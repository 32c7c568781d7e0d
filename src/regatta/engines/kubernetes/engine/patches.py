"""What a person changes about a job that is there: each a small patch of the one they looked at."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

from regatta.api.job import Job, Mode
from regatta.controller.changes import scaled, stopped, suspended
from regatta.controller.world import PodPhase
from regatta.engines.kubernetes.api.client import KubeClient, PatchKind
from regatta.engines.kubernetes.api.kube_errors import ApiError
from regatta.engines.kubernetes.api.resources import PADDLE_JOBS, PODS
from regatta.engines.kubernetes.engine.jobs import get_job, read_job, until_gone
from regatta.engines.kubernetes.engine.pod_views import list_pods
from regatta.engines.kubernetes.objects import podstate
from regatta.engines.kubernetes.objects.annotations import STOPPED

#: A list right after a delete no longer shows it, unless something holds it.
GONE_SECONDS = 2.0
#: Jobs that one call deletes, and requests for it that are under way at once.
AT_ONCE = 500
SIDE_BY_SIDE = 16


async def stop(client: KubeClient, namespace: str, name: str) -> Job:
    """Abort a live job; end the servers that a finished one left running."""
    job = await get_job(client, namespace, name)
    if not job.finished:
        stopped(job)  # refused here as anywhere
        return await _patch(client, job, {"spec": {"runPolicy": {"abort": True}}})
    pods = await list_pods(client, job)
    running = [
        pod
        for pod in pods
        if podstate.phase_of(pod) in (PodPhase.PENDING, PodPhase.STARTING, PodPhase.RUNNING)
        and not podstate.is_stopped(pod)
    ]
    stopped(job, runs_on=bool(running))
    stamp = datetime.now(UTC).isoformat(timespec="seconds")
    change = {"metadata": {"annotations": {STOPPED: stamp}}, "spec": {"activeDeadlineSeconds": 1}}
    for pod in running:
        await client.patch(
            PODS, pod.metadata.name, change, namespace=namespace, uid=pod.metadata.uid
        )
    return job


async def delete(client: KubeClient, namespace: str, name: str) -> Job:
    """The job that was."""
    job = await get_job(client, namespace, name)
    await _ask_to_delete(client, job)
    await until_gone(client, job, GONE_SECONDS)
    return job


async def delete_many(client: KubeClient, jobs: list[Job]) -> None:
    """They go a moment later, which is not waited for here."""
    turns = asyncio.Semaphore(SIDE_BY_SIDE)

    async def delete_one(job: Job) -> None:
        async with turns:
            await _ask_to_delete(client, job)

    await asyncio.gather(*map(delete_one, jobs))


async def _ask_to_delete(client: KubeClient, job: Job) -> None:
    try:
        await client.delete(
            PADDLE_JOBS, job.name, namespace=job.namespace, uid=job.uid, propagation="Background"
        )
    except ApiError as refused:
        if not refused.not_found:
            raise


async def scale(client: KubeClient, namespace: str, name: str, role: str, replicas: int) -> Job:
    job = await get_job(client, namespace, name)
    scaled(job, role, replicas)
    if job.spec.mode is not Mode.CUSTOM:
        return await _patch(client, job, {"spec": {role: {"replicas": replicas}}})
    number = [task.name for task in job.spec.tasks].index(role)
    path = f"/spec/tasks/{number}"
    operations = [
        {"op": "test", "path": f"{path}/name", "value": role},
        {"op": "replace", "path": f"{path}/replicas", "value": replicas},
    ]
    return await _patch(client, job, operations, PatchKind.JSON)


async def suspend(client: KubeClient, namespace: str, name: str, wanted: bool) -> Job:
    job = await get_job(client, namespace, name)
    suspended(job, wanted)
    return await _patch(client, job, {"spec": {"runPolicy": {"suspend": wanted}}})


async def _patch(
    client: KubeClient, job: Job, change: Any, kind: PatchKind = PatchKind.MERGE
) -> Job:
    answer = await client.patch(
        PADDLE_JOBS, job.name, change, namespace=job.namespace, kind=kind, uid=job.uid
    )
    return read_job(answer.raw)
