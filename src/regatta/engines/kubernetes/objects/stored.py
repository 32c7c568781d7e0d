"""A PaddleJob as a cluster holds it: who it is and its status; `api.stored` reads its spec."""

from __future__ import annotations

import msgspec

from regatta.api.job import JobStatus, Metadata
from regatta.engines.kubernetes.objects import takeover
from regatta.engines.kubernetes.objects.documents import JobDocument

_status = msgspec.json.Decoder(JobStatus).decode


def job_metadata(found: JobDocument) -> Metadata:
    known = found.metadata
    return Metadata(
        name=known.name,
        namespace=known.namespace,
        uid=known.uid,
        generation=known.generation,
        creation_timestamp=known.creation_timestamp,
        deletion_timestamp=known.deletion_timestamp,
        labels=known.labels,
        annotations=known.annotations,
        finalizers=tuple(known.finalizers),
    )


def read_status(text: bytes | msgspec.Raw) -> JobStatus:
    try:
        return _status(text)
    except msgspec.ValidationError:
        return takeover.read_status(bytes(text))
