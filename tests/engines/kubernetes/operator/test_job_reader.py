"""Reading a cluster's PaddleJob: what the cluster itself changes about a job."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from regatta.api.errors import InvalidJob
from regatta.controller.plan import Instant, NewPod
from regatta.controller.reconcile import reconcile
from regatta.controller.world import Children
from regatta.engines.kubernetes.objects.documents import JobDocument
from regatta.engines.kubernetes.operator.job_reader import JobReader
from regatta.engines.kubernetes.operator.reconciler import wall_clock

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


def first_pods(document: JobDocument) -> tuple[NewPod, ...]:
    children = Children(services=frozenset())
    wall = wall_clock()
    return reconcile(JobReader().read(document), children, Instant(wall, wall.timestamp())).pods


def test_no_worker_is_made_to_wait_for_a_servers_port() -> None:
    """K15: with gloo a server opens its port only after all workers have met it."""
    for pod in first_pods(stored(withGloo=1)):
        assert "initContainers" not in pod.manifest["spec"]


def test_a_field_of_another_project_is_named_not_dropped() -> None:
    """K23: sampleSetRef changed affinities and volumes of every role behind the user's back."""
    with pytest.raises(InvalidJob, match="sampleSetRef"):
        JobReader().read(stored(sampleSetRef={"name": "s", "mountPath": "/data"}))


def test_a_job_that_runs_is_not_judged_anew_when_the_operator_is_upgraded() -> None:
    running = {
        "phase": "Running",
        "observedGeneration": 1,
        "conditions": [{"type": "Admitted", "status": "True"}],
    }
    of_older_rules = {"sampleSetRef": {"name": "s", "mountPath": "/data"}}
    assert JobReader().read(stored(running, **of_older_rules)).spec.replicas == 2

    formers = {**running, "conditions": []}
    never_run = {**running, "phase": "Failed", "reason": "InvalidSpec"}
    for status in (formers, never_run):
        with pytest.raises(InvalidJob):
            JobReader().read(stored(status, **of_older_rules))


@pytest.mark.parametrize("known", [True, False], ids=["seen before", "after a restart"])
def test_a_job_that_runs_goes_on_when_it_is_edited_into_something_wrong(known: bool) -> None:
    running = {
        "phase": "Running",
        "observedGeneration": 1,
        "conditions": [{"type": "Admitted", "status": "True"}],
    }
    reader = JobReader()
    if known:
        reader.read(stored(running))
    wrong = {"schedulingPolicy": {"minResources": {"cpu": "lots"}}, "runPolicy": {"abort": True}}
    job = reader.read(stored(running, generation=2, **wrong))

    assert (job.spec.replicas, job.metadata.generation) == (2, 1)
    assert job.spec.run_policy.abort
    assert "minResources" in reader.problem("u")

    assert reader.read(stored(running, generation=3)).metadata.generation == 3
    assert reader.problem("u") == ""
