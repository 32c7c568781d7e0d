"""Labels and names that tie children to their job. Upstream's are kept, so that both see them."""

from __future__ import annotations

from typing import Any

from regatta.api.job import API_VERSION, GROUP, KIND, Job

JOB = f"{GROUP}/job-name"
ROLE = f"{GROUP}/role"
INDEX = f"{GROUP}/replica-index"
ATTEMPT = f"{GROUP}/attempt"
REVISION = f"{GROUP}/environment-revision"

#: An annotation of a job that another one ended: that one's uid.
REPLACED_BY = f"{GROUP}/replaced-by"

UPSTREAM_NAME = "paddle-res-name"
UPSTREAM_ROLE = "paddle-res-type"
UPSTREAM_ANNOTATION = "paddle-resource"


def of_job(job: Job) -> dict[str, str]:
    return {
        "app.kubernetes.io/name": "paddlejob",
        "app.kubernetes.io/instance": job.name,
        "app.kubernetes.io/managed-by": "regatta",
        JOB: job.name,
    }


def owned_by(job: Job) -> list[dict[str, Any]]:
    return [
        {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "name": job.name,
            "uid": job.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]


def environment_name(job: Job, revision: int) -> str:
    """Nobody else's by accident: a pod starts as soon as something of this name is there."""
    name = f"{job.name}-env-{revision}"
    return f"{name}-{job.uid[:8]}" if job.uid else name
