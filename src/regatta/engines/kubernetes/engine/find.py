"""One job by its name, and whether it is gone."""

from __future__ import annotations

import asyncio
import time

from regatta.api.job import Job
from regatta.controller.changes import no_such_job
from regatta.engines.kubernetes.api.client import KubeClient
from regatta.engines.kubernetes.api.errors import ApiError
from regatta.engines.kubernetes.api.resources import PADDLE_JOBS
from regatta.engines.kubernetes.engine.reading import read_job


async def get_job(client: KubeClient, namespace: str, name: str) -> Job:
    job = await find_job(client, namespace, name)
    if job is None:
        raise no_such_job(namespace, name)
    return job


async def find_job(client: KubeClient, namespace: str, name: str) -> Job | None:
    try:
        answer = await client.get(PADDLE_JOBS, name, namespace=namespace)
    except ApiError as refused:
        if refused.not_found and refused.details.kind:  # not the resource itself
            return None
        raise
    return read_job(answer.raw)


async def until_gone(client: KubeClient, job: Job, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    pause = 0.02
    while True:
        now = await find_job(client, job.namespace, job.name)
        if now is None or now.uid != job.uid:
            return True
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(pause)
        pause = min(pause * 2, 0.5)
