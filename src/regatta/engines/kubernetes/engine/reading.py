"""A PaddleJob of the cluster as the job that doors show.

The API server has judged it already, so nothing is validated again: aliases are resolved and
defaults filled in, and one that was stored before there were any rules is still shown.
"""

from __future__ import annotations

from typing import Any

import msgspec

from regatta.api.job import Job, JobSpec, Mode
from regatta.engines.kubernetes.objects.documents import JobDocument
from regatta.engines.kubernetes.objects.stored import (
    ROLES,
    complete,
    job_metadata,
    read_spec,
    read_status,
)


def read_job(found: JobDocument | bytes) -> Job:
    if isinstance(found, bytes):
        found = JobDocument.from_json(found)
    return Job(
        metadata=job_metadata(found),
        spec=_spec(msgspec.json.decode(found.spec, type=dict[str, Any])),
        status=read_status(found.status),
    )


def _spec(written: dict[str, Any]) -> JobSpec:
    try:
        return read_spec(written)
    except msgspec.ValidationError:
        spec = complete(written)
        kept = {key: spec[key] for key in ("mode", *ROLES) if key in spec}
        try:
            return msgspec.convert(kept, JobSpec, strict=False)
        except msgspec.ValidationError:
            return JobSpec(mode=Mode.SINGLE)
