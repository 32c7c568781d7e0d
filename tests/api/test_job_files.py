"""Whole files: those the tutorials write load, and each bad one gets the message beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from regatta.api.errors import InvalidJob
from regatta.api.job import CleanPodPolicy, Intranet, Mode, decode_job, document, encode
from regatta.api.load import load_job, validate_document
from regatta.api.quantity import GPU, resources
from tests.api.builders import a_job

FILES = Path(__file__).parent / "files"
GOOD = sorted((FILES / "good").iterdir())
BAD = sorted((FILES / "bad").glob("*.yaml"))


def good(name: str) -> bytes:
    return (FILES / "good" / name).read_bytes()


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_a_bad_file_gets_exactly_the_messages_beside_it(path: Path) -> None:
    with pytest.raises(InvalidJob) as caught:
        load_job(path.read_bytes(), source=path.name)
    assert str(caught.value) == path.with_suffix(".txt").read_text().rstrip("\n")


def test_there_are_enough_bad_files_and_no_message_without_its_file() -> None:
    assert len(BAD) >= 30
    assert {path.stem for path in BAD} == {path.stem for path in (FILES / "bad").glob("*.txt")}


@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.stem)
def test_a_tutorial_style_file_loads_and_survives_the_round_trip(path: Path) -> None:
    job = load_job(path.read_bytes(), source=path.name, strict=True).job
    again = validate_document(document(job), strict=True).job
    assert again.spec == job.spec
    assert again.metadata == job.metadata
    assert decode_job(encode(job)) == job


def test_the_ps_tutorial_is_a_ps_job_that_keeps_its_pods() -> None:
    spec = load_job(good("ps-gloo.yaml")).job.spec
    assert (spec.mode, spec.clean_pod_policy, spec.with_gloo) == (Mode.PS, CleanPodPolicy.NEVER, 1)
    assert [(name, role.replicas) for name, role in spec.roles().items()] == [
        ("ps", 2),
        ("worker", 2),
    ]


def test_the_collective_tutorial_asks_for_one_gpu_a_worker() -> None:
    spec = load_job(good("collective-gpu.yaml")).job.spec
    assert spec.mode is Mode.COLLECTIVE
    assert spec.worker is not None
    assert resources(spec.worker.template).gpus == 1
    limits = spec.worker.template["spec"]["containers"][0]["resources"]["limits"]
    assert limits == {GPU: 1}


def test_a_pod_group_in_the_same_file_is_the_jobs_own() -> None:
    loaded = load_job(good("volcano-podgroup.yaml"))
    group = loaded.companions.pod_group(loaded.job.namespace, loaded.job.name)
    assert group is not None
    assert (group.min_member, group.queue) == (4, "default")
    assert loaded.warnings == ()


def test_a_claim_leads_to_the_volume_beside_it() -> None:
    loaded = load_job(good("pv-pvc.yaml"))
    assert loaded.job.spec.clean_pod_policy is CleanPodPolicy.ON_COMPLETION
    volume = loaded.companions.volume_of("default", "nfs-pvc")
    assert volume is not None
    assert (volume.nfs_server, volume.nfs_path) == ("10.12.201.206", "/nas")
    assert loaded.companions.volume_of("default", "another") is None


def test_anchors_and_merge_keys_are_followed() -> None:
    spec = load_job(good("heter.yaml")).job.spec
    assert spec.mode is Mode.HETER
    assert spec.heter is not None
    assert spec.ps is not None
    assert (spec.heter.replicas, spec.ps.replicas) == (2, 1)
    assert spec.heter.template == spec.ps.template


def test_host_network_is_read_as_host() -> None:
    assert load_job(good("host-network.yaml")).job.spec.intranet is Intranet.HOST


def test_json_with_tabs_is_read_and_its_tasks_keep_their_order() -> None:
    spec = load_job(good("tasks.json")).job.spec
    assert spec.mode is Mode.CUSTOM
    assert list(spec.roles()) == ["server", "client"]
    assert [(port.label, port.count) for port in spec.tasks[0].ports] == [("http", 2), ("ssh", 1)]
    assert spec.tasks[1].completion is not None
    assert spec.tasks[1].completion.min_failed == 2


def test_an_exported_job_leaves_its_status_and_identity_behind() -> None:
    job = load_job(good("exported.yaml")).job
    assert job.status.phase is None
    assert (job.uid, job.metadata.generation) == ("", 1)
    assert job.spec.worker is not None
    assert job.spec.worker.template["metadata"] == {}


def test_a_field_that_stands_a_level_too_high_is_told_where_it_belongs() -> None:
    job = a_job().doc()
    template = job["spec"]["worker"]["template"]
    template["restartPolicy"] = "Never"
    template["spec"]["containers"][0]["limits"] = {"memory": "64Mi"}
    at = "spec.worker.template."
    told = {problem.path: problem.message for problem in validate_document(job).warnings}
    assert f"write {at}spec.restartPolicy" in told[f"{at}restartPolicy"]
    assert (
        f"write {at}spec.containers[0].resources.limits" in told[f"{at}spec.containers[0].limits"]
    )
