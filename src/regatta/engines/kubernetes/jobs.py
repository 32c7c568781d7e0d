"""From a PaddleJob as it stands in the cluster to the Job that the brain knows.

The API server has checked what a schema can; jobs made under an older CRD may still be wrong, and
are then told so instead of being run. A spec is judged once in each generation, whichever operator
did it: that costs milliseconds, and a job that runs is never judged anew by an operator's upgrade.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import msgspec
from msgspec.structs import replace

from regatta.api.job import (
    API_VERSION,
    KIND,
    Job,
    JobSpec,
    JobStatus,
    Phase,
    document,
)
from regatta.api.problems import InvalidJob
from regatta.controller import labels
from regatta.engines.kubernetes.slim import JobDocument
from regatta.engines.kubernetes.stored import job_metadata, read_spec, read_status

#: Reasons that this engine writes and the brain does not know: taken off before it looks.
CREATE_REFUSED = "CreateRefused"
NAME_TAKEN = "NameTaken"
INVALID_SPEC = "InvalidSpec"
_OURS = frozenset({CREATE_REFUSED, NAME_TAKEN, INVALID_SPEC})


class _Parts(msgspec.Struct, frozen=True):
    spec: msgspec.Raw = msgspec.Raw(b"{}")
    status: msgspec.Raw = msgspec.Raw(b"{}")


_parts = msgspec.json.Decoder(_Parts).decode


class JobReader:
    def __init__(self) -> None:
        self._specs: dict[str, tuple[int, JobSpec | InvalidJob]] = {}

    @staticmethod
    def make_ready() -> None:
        """Load what judges a spec: a fifth of a second, better spent before the first job comes."""
        import regatta.api.load  # noqa: F401

    def read(self, found: JobDocument) -> Job:
        """The job with its status exactly as it is stored. Raises InvalidJob."""
        parts = _parts(found.raw)
        status = read_status(parts.status)
        spec = self._spec(found, parts.spec, status)
        return Job(metadata=job_metadata(found), spec=spec, status=status)

    async def read_ahead(self, documents: list[JobDocument]) -> None:
        """Read them once while there is time, a few at a go: others have work too."""
        for number, found in enumerate(documents):
            with contextlib.suppress(InvalidJob):
                self.read(found)
            if number % 8 == 7:
                await asyncio.sleep(0)

    def forget(self, uid: str) -> None:
        self._specs.pop(uid, None)

    def _spec(self, found: JobDocument, text: msgspec.Raw, status: JobStatus) -> JobSpec:
        uid, generation = found.metadata.uid, found.metadata.generation
        known = self._specs.get(uid)
        if known is None or known[0] != generation:
            written = msgspec.json.decode(text)
            known = (generation, _as_judged(found, written, status) or _judge(found, written))
            self._specs[uid] = known
        if isinstance(known[1], InvalidJob):
            raise known[1]
        return known[1]


def _as_judged(found: JobDocument, written: Any, status: JobStatus) -> JobSpec | None:
    """The spec, where an operator has found this very generation right and run it."""
    ours = bool(status.conditions)  # the former operator had none
    seen = status.observed_generation == found.metadata.generation
    if not (ours and seen) or status.reason == INVALID_SPEC:
        return None
    try:
        return read_spec(written)
    except msgspec.ValidationError:
        return None


def _judge(found: JobDocument, written: Any) -> JobSpec | InvalidJob:
    wanted: dict[str, Any] = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": found.metadata.name, "namespace": found.metadata.namespace},
        "spec": written,
    }
    from regatta.api.load import validate_document  # see `make_ready`

    try:
        return validate_document(wanted).job.spec
    except InvalidJob as invalid:
        return invalid


def stored_status(found: JobDocument) -> JobStatus:
    return read_status(_parts(found.raw).status)


def as_the_brain_left_it(status: JobStatus) -> JobStatus:
    """Without what this engine added to explain itself."""
    if status.reason not in _OURS:
        return status
    bare = replace(status, reason="", message="")
    if status.reason == INVALID_SPEC and status.phase is Phase.FAILED:
        # Never run, so not over: another spec may be right.
        kept = tuple(c for c in status.conditions if c.type != "Failed")
        bare = replace(bare, phase=None, completion_time=None, conditions=kept)
    return bare


def status_document(job: Job, status: JobStatus) -> dict[str, Any]:
    """What is stored: the status and, for autoscalers, which pods are the workers."""
    written = document(status)
    if job.spec.worker is not None:
        written["selector"] = f"{labels.JOB}={job.name},{labels.ROLE}=worker"
    return written
