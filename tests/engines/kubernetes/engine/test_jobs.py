"""Jobs of a cluster as doors show them, whoever stored them and when."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from regatta.api.job import CleanPodPolicy, Intranet, Mode, Phase
from regatta.api.load import validate_document
from regatta.engines.kubernetes.engine.jobs import read_job

POD = {"spec": {"containers": [{"name": "main", "image": "x"}]}}


def a_document(spec: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "apiVersion": "batch.paddlepaddle.org/v1",
        "kind": "PaddleJob",
        "metadata": {"name": "mnist", "namespace": "team"},
        "spec": spec,
        **more,
    }


def role(replicas: int) -> dict[str, Any]:
    return {"replicas": replicas, "template": POD}


SPECS = {
    "one worker": {"worker": role(1)},
    "several workers": {"worker": role(2), "elastic": 1},
    "servers": {"ps": role(1), "worker": role(2), "withGloo": 0},
    "heter trainers": {"ps": role(1), "worker": role(2), "heter": role(1)},
    "named tasks": {"tasks": [{"name": "chief", **role(1)}], "mode": "Custom"},
    "names of old": {"worker": role(2), "cleanPolicy": "Never", "intranet": "HostNetwork"},
    "policies": {
        "worker": role(2),
        "runPolicy": {"backoffLimit": 3, "restartScope": "Job"},
        "schedulingPolicy": {"queue": "q", "minAvailable": 2},
    },
}


@pytest.mark.parametrize("spec", SPECS.values(), ids=list(SPECS))
def test_a_job_reads_as_it_does_from_a_file(spec: dict[str, Any]) -> None:
    document = a_document(spec)

    assert read_job(msgspec.json.encode(document)).spec == validate_document(document).job.spec


def test_a_job_that_no_rule_would_let_in_is_still_shown() -> None:
    odd = {"worker": role(2), "cleanPodPolicy": "Nerver", "withGloo": "yes", "intranet": "Cloud"}

    job = read_job(msgspec.json.encode(a_document(odd)))

    assert (job.name, job.spec.mode, job.spec.replicas) == ("mnist", Mode.COLLECTIVE, 2)
    assert job.spec.clean_pod_policy is CleanPodPolicy.ON_COMPLETION
    assert job.spec.intranet is Intranet.POD_IP


def test_a_status_of_the_former_operator_is_read() -> None:
    status = {"phase": "Succeed", "worker": None, "mode": "PS"}

    job = read_job(msgspec.json.encode(a_document({"worker": role(1)}, status=status)))

    assert job.status.phase is Phase.COMPLETED
