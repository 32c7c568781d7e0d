"""A PaddleJob of the cluster as the job that doors show, and one by its name.

The API server has judged it already, so nothing is validated again, and one that was stored before
there were any rules is still shown.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

import msgspec

from regatta.api.errors import JobNotFound
from regatta.api.job import Job
from regatta.api.stored import read_what_fits
from regatta.controller.changes import no_such_job
from regatta.engines.inventory import RunView
from regatta.engines.kubernetes.api.client import KubeClient
from regatta.engines.kubernetes.api.kube_errors import ApiError
from regatta.engines.kubernetes.api.resources import PADDLE_JOBS
from regatta.engines.kubernetes.objects.job_document import JobDocument, job_metadata, read_status


def read_job(found: JobDocument | bytes) -> Job:
    if isinstance(found, bytes):
        found = JobDocument.from_json(found)
    return Job(
        metadata=job_metadata(found),
        spec=read_what_fits(msgspec.json.decode(found.spec, type=dict[str, Any])),
        status=read_status(found.status),
    )


def run_view(job: Job) -> RunView:
    status = job.status
    return RunView(
        namespace=job.namespace,
        name=job.name,
        uid=job.uid,
        mode=status.mode or job.spec.mode.value,
        phase=status.phase.value if status.phase else "Pending",
        reason=status.reason,
        message=status.message,
        created_at=job.metadata.creation_timestamp,
        started_at=status.start_time,
        ended_at=status.completion_time if job.finished else None,
    )


async def get_job(client: KubeClient, namespace: str, name: str, uid: str = "") -> Job:
    return read_job(await get_document(client, namespace, name, uid))


async def get_document(client: KubeClient, namespace: str, name: str, uid: str = "") -> JobDocument:
    found = await find_document(client, namespace, name)
    if uid and (found is None or found.metadata.uid != uid):
        raise no_such_run_here(uid)
    if found is None:
        raise no_such_job(namespace, name)
    return found


def no_such_run_here(uid: str) -> JobNotFound:
    return JobNotFound(
        f"no job there has the UID {uid}: it was deleted or replaced, and a cluster keeps no "
        "record of such jobs. `regatta history -A` lists the jobs that are there."
    )


async def find_job(client: KubeClient, namespace: str, name: str) -> Job | None:
    found = await find_document(client, namespace, name)
    return None if found is None else read_job(found)


async def find_document(client: KubeClient, namespace: str, name: str) -> JobDocument | None:
    try:
        answer = await client.get(PADDLE_JOBS, name, namespace=namespace)
    except ApiError as refused:
        if refused.not_found and refused.details.kind:  # not the resource itself
            return None
        raise
    return JobDocument.from_json(answer.raw)


async def until_gone(client: KubeClient, job: Job, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    pause = 0.02
    while True:
        now = await find_document(client, job.namespace, job.name)
        if now is None or now.metadata.uid != job.uid:
            return True
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(pause)
        pause = min(pause * 2, 0.5)
