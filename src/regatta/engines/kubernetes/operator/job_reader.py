"""From a PaddleJob as it stands in the cluster to the Job that the brain knows.

The API server has checked what a schema can; jobs made under an older CRD, or in ways that a schema
cannot see, may still be wrong. What is wrong is found here, once in each generation because it
costs milliseconds; what follows from it is the brain's to say (`policies.wrong_spec`).
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from msgspec.structs import replace

from regatta.api.errors import InvalidJob
from regatta.api.job import API_VERSION, KIND, Job, JobSpec, JobStatus, document
from regatta.api.stored import read_run_policy, read_spec
from regatta.controller import labels
from regatta.controller.policies.wrong_spec import WrongSpec, spec_in_force, was_found_right
from regatta.engines.kubernetes.objects.job_document import JobDocument, job_metadata, read_status

#: Reasons that this engine writes and the brain does not know: taken off before it looks.
CREATE_REFUSED = "CreateRefused"
NAME_TAKEN = "NameTaken"
_OURS = frozenset({CREATE_REFUSED, NAME_TAKEN})


class Reading(msgspec.Struct, frozen=True):
    """A job with the spec that holds and its status exactly as it is stored."""

    job: Job
    #: What is wrong with the spec that is written.
    problem: str = ""


class _Known(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one job's spec."""

    generation: int
    #: The last one without a problem.
    right: JobSpec | None = None
    #: The one of this generation, where it has some.
    wrong: WrongSpec | None = None


class JobReader:
    def __init__(self) -> None:
        self._known: dict[str, _Known] = {}

    @staticmethod
    def make_ready() -> None:
        """Load what judges a spec: a fifth of a second, better spent before the first job comes."""
        import regatta.api.load  # noqa: F401

    def read(self, found: JobDocument) -> Reading:
        status = read_status(found.status)
        known = self._look_up(found, status)
        metadata = job_metadata(found)
        if known.wrong is None and known.right is not None:
            return Reading(Job(metadata=metadata, spec=known.right, status=status))
        assert known.wrong is not None
        spec = spec_in_force(status, known.wrong, known.right)
        return Reading(Job(metadata=metadata, spec=spec, status=status), known.wrong.problem)

    async def read_ahead(self, documents: list[JobDocument]) -> None:
        """Read them once while there is time, a few at a go: others have work too."""
        for number, found in enumerate(documents):
            self.read(found)
            if number % 8 == 7:
                await asyncio.sleep(0)

    def forget(self, uid: str) -> None:
        self._known.pop(uid, None)

    def _look_up(self, found: JobDocument, status: JobStatus) -> _Known:
        uid, generation = found.metadata.uid, found.metadata.generation
        known = self._known.get(uid)
        if known is not None and known.generation == generation:
            return known
        judged = _read(found, status)
        if isinstance(judged, WrongSpec):
            right = known.right if known is not None else None
            known = _Known(generation=generation, right=right, wrong=judged)
        else:
            known = _Known(generation=generation, right=judged)
        self._known[uid] = known
        return known


def _read(found: JobDocument, status: JobStatus) -> JobSpec | WrongSpec:
    written: Any = msgspec.json.decode(found.spec)
    readable = _readable(written)
    if readable is not None and was_found_right(status, found.metadata.generation):
        return readable
    try:
        return _judge(found, written)
    except InvalidJob as invalid:
        policy = read_run_policy(written) if isinstance(written, dict) else None
        return WrongSpec(problems=tuple(invalid.problems), spec=readable, run_policy=policy)


def _readable(written: Any) -> JobSpec | None:
    try:
        return read_spec(written) if isinstance(written, dict) else None
    except msgspec.ValidationError:
        return None


def _judge(found: JobDocument, written: Any) -> JobSpec:
    wanted: dict[str, Any] = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": found.metadata.name, "namespace": found.metadata.namespace},
        "spec": written,
    }
    from regatta.api.load import validate_document  # see `make_ready`

    return validate_document(wanted).job.spec


def as_the_brain_left_it(status: JobStatus) -> JobStatus:
    """Without what this engine added to explain itself."""
    return replace(status, reason="", message="") if status.reason in _OURS else status


def status_document(job: Job, status: JobStatus) -> dict[str, Any]:
    """What is stored: the status and, for autoscalers, which pods are the workers."""
    written = document(status)
    if job.spec.worker is not None:
        written["selector"] = f"{labels.JOB}={job.name},{labels.ROLE}=worker"
    return written
