"""Reading a cluster's PaddleJob: what the cluster itself changes about a job."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from regatta.api.stored import read_spec
from regatta.controller.policies.attempts import fingerprint
from regatta.controller.policies.wrong_spec import NO_SPEC
from regatta.engines.kubernetes.objects.job_document import JobDocument
from regatta.engines.kubernetes.operator.job_reader import JobReader

TEMPLATE = {"spec": {"containers": [{"name": "main", "image": "x", "command": ["true"]}]}}


def stored(status: dict[str, Any] | None = None, generation: int = 1, **spec: Any) -> JobDocument:
    raw = msgspec.json.encode(
        {
            "apiVersion": "batch.paddlepaddle.org/v1",
            "kind": "PaddleJob",
            "metadata": {"name": "j", "namespace": "n", "uid": "u", "generation": generation},
            "spec": {
                "ps": {"replicas": 1, "template": TEMPLATE},
                "worker": {"replicas": 1, "template": TEMPLATE},
                **spec,
            },
            "status": status or {},
        }
    )
    return JobDocument.from_json(raw)


RUNNING: dict[str, Any] = {
    "phase": "Running",
    "mode": "PS",
    "observedGeneration": 1,
    "shape": {"ps": 1, "worker": 1},
    "conditions": [{"type": "Admitted", "status": "True"}],
    "madeFrom": fingerprint(read_spec(msgspec.json.decode(stored().spec))),
}
OF_OLDER_RULES = {"sampleSetRef": {"name": "s", "mountPath": "/data"}}
LOTS = {"schedulingPolicy": {"minResources": {"cpu": "lots"}}}


def test_a_field_of_another_project_is_named_not_dropped() -> None:
    """K23: sampleSetRef changed affinities and volumes of every role behind the user's back."""
    reading = JobReader().read(stored(**OF_OLDER_RULES))
    assert "sampleSetRef" in reading.problem
    assert reading.job.spec == NO_SPEC


def test_a_job_that_runs_is_not_judged_anew_when_the_operator_is_upgraded() -> None:
    reading = JobReader().read(stored(RUNNING, **OF_OLDER_RULES))
    assert (reading.job.spec.replicas, reading.problem) == (2, "")

    formers = {**RUNNING, "conditions": []}
    never_run = {**RUNNING, "phase": "Failed", "reason": "InvalidSpec"}
    for status in (formers, never_run):
        assert JobReader().read(stored(status, **OF_OLDER_RULES)).problem


@pytest.mark.parametrize("known", [True, False], ids=["seen before", "after a restart"])
def test_a_job_that_runs_is_read_with_its_last_right_spec_and_what_is_wrong(known: bool) -> None:
    reader = JobReader()
    if known:
        reader.read(stored(RUNNING))
    worker = {"replicas": 5, "template": TEMPLATE}
    wrong = {**LOTS, "worker": worker, "runPolicy": {"abort": True}}

    reading = reader.read(stored(RUNNING, generation=2, **wrong))

    assert (reading.job.spec.replicas, reading.job.metadata.generation) == (2, 2)
    assert reading.job.spec.run_policy.abort
    assert "minResources" in reading.problem

    right = reader.read(stored(RUNNING, generation=3))
    assert (right.job.metadata.generation, right.problem) == (3, "")


def test_the_problem_is_that_of_the_spec_as_it_stands() -> None:
    reader = JobReader()
    first = reader.read(stored(**OF_OLDER_RULES)).problem
    assert reader.read(stored(**OF_OLDER_RULES)).problem == first

    second = reader.read(stored(generation=2, **LOTS)).problem
    assert ("sampleSetRef" in first, "sampleSetRef" in second) == (True, False)
    assert "minResources" in second
    assert reader.read(stored(generation=3)).problem == ""


@pytest.mark.parametrize("spec", [None, 5, "text", [], {"worker": 3, "runPolicy": []}], ids=repr)
def test_what_no_schema_would_let_in_is_read_as_wrong(spec: Any) -> None:
    document = msgspec.structs.replace(stored(), spec=msgspec.json.encode(spec))
    reading = JobReader().read(document)
    assert reading.problem
    assert reading.job.spec == NO_SPEC
