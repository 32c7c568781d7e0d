"""A PaddleJob as it stands in the cluster: its text, who it is and its status; `api.stored` reads
its spec."""

from __future__ import annotations

import msgspec

from regatta.api.job import JobStatus
from regatta.api.job import Metadata as JobMetadata
from regatta.engines.kubernetes.api.models import Metadata
from regatta.engines.kubernetes.objects import takeover


class JobDocument(msgspec.Struct, frozen=True, gc=False):
    """Perhaps not a valid job: reading it as one, and saying what is wrong with it, is not done
    here."""

    metadata: Metadata
    spec: bytes
    status: bytes

    @classmethod
    def from_json(cls, text: msgspec.Raw | bytes) -> JobDocument:
        # Not the whole text: who wrote which field takes as much room as all else.
        whole = _decode(text)
        return cls(whole.metadata, bytes(whole.spec), bytes(whole.status))


class _Whole(msgspec.Struct, frozen=True, gc=False):
    metadata: Metadata
    spec: msgspec.Raw = msgspec.Raw(b"{}")
    status: msgspec.Raw = msgspec.Raw(b"{}")


_decode = msgspec.json.Decoder(_Whole).decode
_status = msgspec.json.Decoder(JobStatus).decode


def job_metadata(found: JobDocument) -> JobMetadata:
    known = found.metadata
    return JobMetadata(
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
