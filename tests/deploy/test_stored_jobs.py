"""What the API server makes of a job it takes: defaults, kept fields, columns, scale, status."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from regatta.api.job import (
    Condition,
    Failure,
    JobStatus,
    Phase,
    Progress,
    Ref,
    RoleStatus,
    document,
)
from regatta.api.load import load_job, validate_document
from regatta.api.stored import read_spec
from tests.deploy.conftest import ROOT
from tests.deploy.jobs import a_job, jobs_path, role, task
from tests.kubernetes.controlplane.api import Refused
from tests.kubernetes.controlplane.plane import ControlPlane

EXAMPLES = sorted((ROOT / "deploy/examples").glob("*.yaml"))
GOOD_FILES = sorted((ROOT / "tests/api/files/good").iterdir())


def stored(plane: ControlPlane, namespace: str, **spec: object) -> dict[str, object]:
    plane.api.create(jobs_path(namespace), a_job(**spec))
    found: dict[str, object] = plane.api.get(jobs_path(namespace, "demo"))["spec"]
    return found


def _yaml_documents(path: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(path.read_bytes()))


def test_the_tutorials_eight_examples_are_there() -> None:
    assert {path.stem for path in EXAMPLES} == {
        "wide_and_deep",
        "wide_and_deep_podip",
        "wide_and_deep_service",
        "wide_and_deep_volcano",
        "resnet",
        "gpu",
        "data",
        "elastic",
    }


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_loads_without_a_warning(path: Path) -> None:
    assert load_job(path.read_bytes(), source=path.name, strict=True).warnings == ()


@pytest.mark.parametrize("path", [*EXAMPLES, *GOOD_FILES], ids=lambda path: path.stem)
def test_kubectl_apply_takes_a_file_and_the_job_reads_as_it_did(
    plane: ControlPlane, namespace: str, path: Path
) -> None:
    job = load_job(path.read_bytes(), source=path.name, namespace=namespace).job
    json_file = path.suffix == ".json"
    documents = [json.loads(path.read_bytes())] if json_file else _yaml_documents(path)
    kept = [
        part
        for part in documents
        if part["kind"] in ("PaddleJob", "List")  # the others need Volcano, or a whole cluster
    ]
    for part in kept:
        for item in part.get("items", [part]):
            item["metadata"].pop("namespace", None)
            item["metadata"].pop("resourceVersion", None)
            item["metadata"].pop("uid", None)
    text = "---\n".join(yaml.safe_dump(part) for part in kept)
    plane.kubectl("-n", namespace, "apply", "-f", "-", input=text)
    found = plane.api.get(jobs_path(namespace, job.name))
    assert validate_document(found).job.spec == job.spec
    assert read_spec(found["spec"]) == job.spec, "without judgement it reads the same"


def test_defaults_are_filled_in_where_a_field_has_one_spelling(
    plane: ControlPlane, namespace: str
) -> None:
    spec = stored(plane, namespace, tasks=[task("a", ports=[{"label": "http"}])])
    assert spec["intranet"] == "PodIP"
    assert spec["runPolicy"] == {
        "abort": False,
        "backoffLimit": 0,
        "restartScope": "Job",
        "suspend": False,
    }
    assert spec["tasks"][0]["ports"] == [{"label": "http", "count": 1}]  # type: ignore[index]
    assert not {"cleanPodPolicy", "cleanPolicy", "withGloo", "mode"} & spec.keys()


def test_fields_of_a_later_kubernetes_are_kept_in_pods_and_containers(
    plane: ControlPlane, namespace: str
) -> None:
    template = {
        "spec": {
            "fieldOfTomorrow": {"a": [1, {"b": "c"}]},
            "containers": [{"name": "main", "image": "x", "alsoNew": True}],
            "initContainers": [{"name": "first", "image": "x", "newer": "yes"}],
        }
    }
    spec = stored(plane, namespace, worker=role(template=template))
    assert spec["worker"]["template"] == template  # type: ignore[index]


def test_quantities_may_be_text_whole_numbers_or_fractions(
    plane: ControlPlane, namespace: str
) -> None:
    limits = {"cpu": 0.5, "memory": "1Gi", "nvidia.com/gpu": 1}
    template = {
        "spec": {"containers": [{"name": "main", "image": "x", "resources": {"limits": limits}}]}
    }
    spec = stored(plane, namespace, worker=role(template=template))
    container = spec["worker"]["template"]["spec"]["containers"][0]  # type: ignore[index]
    assert container["resources"]["limits"] == limits


def test_what_go_programs_write_into_templates_is_taken(
    plane: ControlPlane, namespace: str
) -> None:
    template = {"metadata": {"creationTimestamp": None, "labels": {"a": "b"}}} | role()["template"]
    spec = stored(plane, namespace, worker=role(template=template))
    assert spec["worker"]["template"]["metadata"]["labels"] == {"a": "b"}  # type: ignore[index]


def test_get_shows_the_columns_that_users_know(plane: ControlPlane, namespace: str) -> None:
    plane.api.create(jobs_path(namespace), a_job(ps=role(2), worker=role(2)))
    status = {
        "phase": "Running",
        "mode": "PS",
        "ps": {"ready": "2/2"},
        "worker": {"ready": "1/2"},
        "message": "as it should",
    }
    plane.api.patch(f"{jobs_path(namespace, 'demo')}/status", {"status": status})
    heading, row = plane.kubectl("-n", namespace, "get", "pdj").stdout.splitlines()
    assert heading.split() == ["NAME", "STATUS", "MODE", "PS", "WORKER", "AGE"]
    assert row.split()[:5] == ["demo", "Running", "PS", "2/2", "1/2"]
    wide = plane.kubectl("-n", namespace, "get", "pdj", "-o", "wide").stdout
    assert "as it should" in wide


def test_kubectl_scale_moves_the_workers(plane: ControlPlane, namespace: str) -> None:
    plane.api.create(jobs_path(namespace), a_job(worker=role(2)))
    plane.api.patch(
        f"{jobs_path(namespace, 'demo')}/status",
        {"status": {"worker": {"replicas": 2}, "selector": "role=worker"}},
    )
    plane.kubectl("-n", namespace, "scale", "pdj/demo", "--replicas=4")
    assert plane.api.get(jobs_path(namespace, "demo"))["spec"]["worker"]["replicas"] == 4
    scale = plane.api.get(f"{jobs_path(namespace, 'demo')}/scale")
    assert scale["spec"] == {"replicas": 4}
    assert scale["status"] == {"replicas": 2, "selector": "role=worker"}


def test_scaling_a_job_without_workers_is_refused_with_a_sentence(
    plane: ControlPlane, namespace: str
) -> None:
    plane.api.create(jobs_path(namespace), a_job(tasks=[task("a")]))
    ended = plane.kubectl("-n", namespace, "scale", "pdj/demo", "--replicas=3", check=False)
    assert ended.returncode != 0
    assert "tasks cannot stand beside ps, worker or heter" in ended.stderr


def test_all_that_the_brain_remembers_survives_the_round_trip(
    plane: ControlPlane, namespace: str
) -> None:
    at = datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)
    worker = RoleStatus(
        pending=1,
        starting=2,
        running=3,
        failed=4,
        succeeded=5,
        unknown=6,
        ready="3/21",
        replicas=21,
        refs=(Ref(name="demo-worker-0", uid="u"),),
        done=(3, 4),
        attempt=2,
        replica_attempts={"3": 7},
    )
    status = JobStatus(
        phase=Phase.RUNNING,
        mode="PS",
        ps=worker,
        worker=worker,
        heter=worker,
        tasks={"a": worker},
        conditions=(
            Condition(
                type="Failed",
                status="False",
                reason="r",
                message="m",
                last_transition_time=at,
                observed_generation=3,
            ),
        ),
        observed_generation=3,
        start_time=at,
        completion_time=at,
        restarts=1,
        attempt=2,
        revision=3,
        shape={"worker": 21},
        made_from="m",
        disruptions=(at,),
        restart_at=at,
        started_awake=1.25,
        heartbeat_awake=2.5,
        reason="r",
        message="m",
        spec_problem="p",
        failure=Failure(
            pod="p", role="worker", index=1, exit_code=2, reason="r", message="m", finished_at=at
        ),
        progress=Progress(step=1, total=2, metrics={"loss": 0.5}, at=at, eta_seconds=3.5),
    )
    plane.api.create(jobs_path(namespace), a_job())
    plane.api.patch(f"{jobs_path(namespace, 'demo')}/status", {"status": document(status)})
    found = plane.api.get(jobs_path(namespace, "demo"))["status"]
    assert msgspec.convert(found, JobStatus) == status
    unset = [field for field in JobStatus.__struct_fields__ if not getattr(status, field)]
    assert unset == [], "a new field of the status is not tried here"


def test_a_condition_of_another_type_is_refused(plane: ControlPlane, namespace: str) -> None:
    plane.api.create(jobs_path(namespace), a_job())
    with pytest.raises(Refused, match="EnvironmentReady"):
        plane.api.patch(
            f"{jobs_path(namespace, 'demo')}/status",
            {"status": {"conditions": [{"type": "Odd", "status": "True"}]}},
        )


def test_kubectl_wait_sees_the_condition(plane: ControlPlane, namespace: str) -> None:
    plane.api.create(jobs_path(namespace), a_job())
    plane.api.patch(
        f"{jobs_path(namespace, 'demo')}/status",
        {"status": {"conditions": [{"type": "Completed", "status": "True"}]}},
    )
    said = plane.kubectl(
        "-n", namespace, "wait", "pdj/demo", "--for=condition=Completed", "--timeout=30s"
    )
    assert "condition met" in said.stdout


def test_kubectl_explain_has_a_line_on_each_of_our_fields(plane: ControlPlane) -> None:
    said = plane.kubectl("explain", "pdj.spec.runPolicy").stdout
    assert "Failures after which the job is tried again; -1: after each." in said
