"""From a PaddleJob as it stands in the cluster to the Job that the brain knows.

The API server has checked what a schema can; jobs made under an older CRD may still be wrong, and
are then told so instead of being run. A spec is judged once in each generation, whichever operator
did it: that costs milliseconds, and a job that runs is never judged anew by an operator's upgrade.
A job that runs and is edited into something wrong goes on as it was.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import msgspec
from msgspec.structs import replace

from regatta.api.errors import InvalidJob
from regatta.api.job import (
    API_VERSION,
    KIND,
    Job,
    JobSpec,
    JobStatus,
    Phase,
    RunPolicy,
    document,
)
from regatta.api.stored import read_spec
from regatta.controller import labels
from regatta.engines.kubernetes.objects.documents import JobDocument
from regatta.engines.kubernetes.objects.stored import job_metadata, read_status

#: Reasons that this engine writes and the brain does not know: taken off before it looks.
CREATE_REFUSED = "CreateRefused"
NAME_TAKEN = "NameTaken"
INVALID_SPEC = "InvalidSpec"
_OURS = frozenset({CREATE_REFUSED, NAME_TAKEN, INVALID_SPEC})


class _Known(msgspec.Struct, frozen=True):
    """What is known of one job's spec."""

    generation: int
    spec: JobSpec
    #: What is wrong with the spec as it stands; then `spec` is the one that holds instead.
    problem: str = ""


class JobReader:
    def __init__(self) -> None:
        self._known: dict[str, _Known] = {}
        #: Of jobs that never ran, with the generation that was judged.
        self._refused: dict[str, tuple[int, InvalidJob]] = {}

    @staticmethod
    def make_ready() -> None:
        """Load what judges a spec: a fifth of a second, better spent before the first job comes."""
        import regatta.api.load  # noqa: F401

    def read(self, found: JobDocument) -> Job:
        """The job with its status exactly as it is stored. Raises InvalidJob."""
        status = read_status(found.status)
        known = self._look_up(found, status)
        metadata = job_metadata(found)
        if known.problem:  # nothing that the status says is about that edit
            metadata = replace(metadata, generation=status.observed_generation)
        return Job(metadata=metadata, spec=known.spec, status=status)

    def problem(self, uid: str) -> str:
        """What is wrong with an edit that is therefore not followed."""
        known = self._known.get(uid)
        return known.problem if known is not None else ""

    async def read_ahead(self, documents: list[JobDocument]) -> None:
        """Read them once while there is time, a few at a go: others have work too."""
        for number, found in enumerate(documents):
            with contextlib.suppress(InvalidJob):
                self.read(found)
            if number % 8 == 7:
                await asyncio.sleep(0)

    def forget(self, uid: str) -> None:
        self._known.pop(uid, None)
        self._refused.pop(uid, None)

    def _look_up(self, found: JobDocument, status: JobStatus) -> _Known:
        uid, generation = found.metadata.uid, found.metadata.generation
        known = self._known.get(uid)
        if known is not None and known.generation == generation:
            return known
        refused = self._refused.get(uid)
        if refused is not None and refused[0] == generation:
            raise refused[1]
        written = msgspec.json.decode(found.spec)
        judged = _as_judged(found, written, status) or _judge(found, written)
        if isinstance(judged, InvalidJob):
            spec = _in_force(known, written, status)
            if spec is None:
                self._refused[uid] = (generation, judged)
                raise judged
            known = _Known(generation, spec, str(judged))
        else:
            known = _Known(generation, judged)
        self._known[uid] = known
        self._refused.pop(uid, None)
        return known


def _in_force(known: _Known | None, written: Any, status: JobStatus) -> JobSpec | None:
    """What a job that has begun goes on with: its last right spec, or as much as can be read."""
    begun = bool(status.conditions) and status.phase is not None and not never_run(status)
    if not begun:
        return None
    try:
        spec = known.spec if known is not None else read_spec(written)
        policy = msgspec.convert(written.get("runPolicy") or {}, RunPolicy, strict=False)
    except msgspec.ValidationError:
        return known.spec if known is not None else None
    return replace(spec, run_policy=policy)


def never_run(status: JobStatus) -> bool:
    return status.reason == INVALID_SPEC and status.phase is Phase.FAILED


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
    return read_status(found.status)


def as_the_brain_left_it(status: JobStatus) -> JobStatus:
    """Without what this engine added to explain itself."""
    if status.reason not in _OURS:
        return status
    bare = replace(status, reason="", message="")
    if never_run(status):
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
