"""A PaddleJob of the cluster as the job that doors show.

The API server has judged it already, so nothing is validated again, and one that was stored before
there were any rules is still shown.
"""

from __future__ import annotations

from typing import Any

import msgspec

from regatta.api.job import Job
from regatta.api.stored import read_what_fits
from regatta.engines.kubernetes.objects.documents import JobDocument
from regatta.engines.kubernetes.objects.stored import job_metadata, read_status


def read_job(found: JobDocument | bytes) -> Job:
    if isinstance(found, bytes):
        found = JobDocument.from_json(found)
    return Job(
        metadata=job_metadata(found),
        spec=read_what_fits(msgspec.json.decode(found.spec, type=dict[str, Any])),
        status=read_status(found.status),
    )
