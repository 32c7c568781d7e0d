"""`regatta submit` and `run` on a cluster: what goes in, what makes room, what is refused."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.doors import eventually
from tests.kubernetes.engine import jobfiles
from tests.kubernetes.engine.conftest import ClusterRegatta
from tests.kubernetes.operator.builders import a_job
from tests.kubernetes.operator.running import Jobs


def test_a_job_goes_to_the_namespace_of_the_context(
    regatta: ClusterRegatta, jobs: Jobs, name: str
) -> None:
    said = regatta("submit", "-", stdin=jobfiles.text(jobfiles.running(name, workers=1)))

    assert said.code == 0, said
    assert said.out.splitlines()[0] == f"job {name} submitted"
    assert f"regatta logs -f {name}\n" in said.out
    assert jobs.get(name)["metadata"]["namespace"] == jobs.namespace


def test_what_means_less_on_a_cluster_is_said(regatta: ClusterRegatta, name: str) -> None:
    text = jobfiles.text(jobfiles.running(name, workers=1))
    options = ("runPolicy.hangTimeoutSeconds=60", "runPolicy.restartScope=Role")

    said = regatta("submit", "-", *(f"--set=spec.{option}" for option in options), stdin=text)

    assert said.code == 0, said
    assert "spec.runPolicy.hangTimeoutSeconds: it has no effect on a cluster" in said.err
    assert "spec.runPolicy.restartScope: with intranet PodIP a restarted pod" in said.err


def test_what_the_command_line_changes_reaches_the_cluster(
    regatta: ClusterRegatta, jobs: Jobs, name: str
) -> None:
    text = jobfiles.text(jobfiles.running("other"))
    options = ("--name", name, "--env", "SEED=7", "--set", "spec.worker.replicas=3")

    assert regatta("submit", "-", *options, stdin=text).code == 0

    worker = jobs.get(name)["spec"]["worker"]
    assert worker["replicas"] == 3
    assert worker["template"]["spec"]["containers"][0]["env"] == [{"name": "SEED", "value": "7"}]


def test_the_next_command_line_says_again_what_this_one_said(
    regatta: ClusterRegatta, jobs: Jobs, name: str
) -> None:
    text = jobfiles.text(jobfiles.running(name, workers=1))
    words = (
        "--engine",
        "kubernetes",
        "-n",
        jobs.namespace,
        "--kubeconfig",
        str(regatta.kubeconfig),
    )

    said = regatta(*words, "submit", "-", stdin=text, REGATTA_ENGINE="")

    again = f"{name} --engine kubernetes --kubeconfig {regatta.kubeconfig}"
    assert f"regatta stop {again}\n" in said.out, said


def test_a_finished_job_of_the_same_name_makes_room(
    regatta: ClusterRegatta, jobs: Jobs, name: str
) -> None:
    text = jobfiles.text(jobfiles.ending(name))
    assert regatta("submit", "--wait", "-", stdin=text).code == 0
    first = jobs.get(name)["metadata"]["uid"]

    assert regatta("submit", "-", stdin=text).code == 0

    assert jobs.get(name)["metadata"]["uid"] != first


def test_a_live_job_of_the_same_name_is_only_ended_with_replace(
    regatta: ClusterRegatta, jobs: Jobs, name: str
) -> None:
    text = jobfiles.text(jobfiles.running(name, workers=1))
    regatta("submit", "-", stdin=text)
    first = jobs.get(name)["metadata"]["uid"]

    said = regatta("submit", "-", stdin=text)
    assert said.code == 4
    assert "Use `--replace` to end it" in said.err
    assert jobs.get(name)["metadata"]["uid"] == first

    assert regatta("submit", "-", "--replace", stdin=text).code == 0
    assert jobs.get(name)["metadata"]["uid"] != first


def test_a_finished_job_stays_when_the_new_one_is_refused(
    regatta: ClusterRegatta, jobs: Jobs, name: str
) -> None:
    regatta("submit", "--wait", "-", stdin=jobfiles.text(jobfiles.ending(name)))
    first = jobs.get(name)["metadata"]["uid"]
    quota(jobs)

    said = regatta("submit", "-", stdin=jobfiles.text(jobfiles.ending(name)))

    assert said.code == 2
    assert "quota: full" in said.err  # exceeded, or not counted yet: refused either way
    assert jobs.get(name)["metadata"]["uid"] == first


def test_a_bad_file_has_the_same_problems_as_offline(regatta: ClusterRegatta) -> None:
    text = "kind: PaddleJob\nspec: {worker: {replicas: many}}\n"

    offline, said = regatta("validate", "-", stdin=text), regatta("submit", "-", stdin=text)

    def problems(err: str) -> list[str]:
        return [line for line in err.splitlines() if line.startswith("  - ")]

    assert said.code == offline.code == 2
    assert problems(said.err) == problems(offline.err) != []


LOCAL_ONLY = {
    "an interpreter": ["--python", "python3"],
    "a directory for a volume": ["--volume", "data=/tmp"],
    "a container runtime": ["--runtime", "podman"],
    "no GPUs": ["--no-gpu"],
    "a working directory": ["--workdir", "/tmp"],
}


@pytest.mark.parametrize("options", LOCAL_ONLY.values(), ids=list(LOCAL_ONLY))
def test_options_about_this_machine_are_refused(
    regatta: ClusterRegatta, name: str, options: list[str]
) -> None:
    said = regatta("run", "-", *options, stdin=jobfiles.text(jobfiles.running(name)))

    assert said.code == 2
    assert f"{options[0]} is about jobs on this machine; on a cluster" in said.err
    assert f"Leave {options[0]} out." in said.err


def test_what_stands_beside_the_job_is_there_before_it(
    regatta: ClusterRegatta, jobs: Jobs, name: str
) -> None:
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"data-{jobs.namespace}"},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteMany"],
            "storageClassName": "",
            "hostPath": {"path": "/data"},
            "claimRef": {"name": "data"},
        },
    }
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "storageClassName": "",
            "volumeName": f"data-{jobs.namespace}",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    text = jobfiles.text(jobfiles.running(name, workers=1), volume, claim)

    for _ in range(2):  # what is there already and the same is no trouble
        said = regatta("submit", "-", "--replace", stdin=text)
        assert said.code == 0, said

    path = f"{jobs.core}/persistentvolumeclaims/data"
    jobs.api.wait_for(path, lambda seen: seen["status"]["phase"] == "Bound", what="bound")


def test_a_companion_that_the_cluster_does_not_know_is_told(
    regatta: ClusterRegatta, jobs: Jobs, name: str
) -> None:
    group = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"minMember": 1},
    }

    said = regatta("submit", "-", stdin=jobfiles.text(jobfiles.running(name), group))

    assert said.code == 2
    assert "no PodGroup of scheduling.volcano.sh/v1beta1" in said.err
    assert jobs.api.find(f"{jobs.path}/{name}") is None


def test_a_dry_run_prints_what_the_operator_would_create(
    regatta: ClusterRegatta, jobs: Jobs, name: str
) -> None:
    text = jobfiles.text(jobfiles.running(name, workers=2, servers=1))

    said = regatta("run", "--dry-run", "-", stdin=text)

    *objects, rest = yaml.safe_load_all(said.out)
    assert [made["metadata"]["name"] for made in objects] == [
        *(f"{name}-ps-0", f"{name}-worker-0", f"{name}-worker-1", f"{name}-env-1-<uid>")
    ]
    worker = rest["environment"][f"{name}-worker-1"]
    assert worker["PADDLE_PSERVERS_IP_PORT_LIST"] == f"<{name}-ps-0>:20000"
    assert worker["PADDLE_CURRENT_ENDPOINT"] == f"<{name}-worker-1>:20000"
    assert "known only to the cluster" in said.err
    assert jobs.api.find(f"{jobs.path}/{name}") is None


def test_a_dry_run_of_a_job_with_services_and_a_gang_shows_them(
    regatta: ClusterRegatta, name: str
) -> None:
    job = jobfiles.running(name, workers=2).spec(intranet="Service")
    text = jobfiles.text(job.pod("worker", schedulerName="volcano"))

    said = regatta("run", "--dry-run", "-", "-o", "json", stdin=text)

    shown = yaml.safe_load(said.out)
    kinds = [made["kind"] for made in shown["objects"]]
    assert kinds == ["PodGroup", "Service", "Service", "Pod", "Pod", "ConfigMap"]
    worker = shown["environment"][f"{name}-worker-0"]
    assert worker["PADDLE_TRAINERS"] == f"{name}-worker-0,{name}-worker-1"


def test_a_dry_run_by_the_server_shows_what_it_would_store(
    regatta: ClusterRegatta, jobs: Jobs, name: str
) -> None:
    said = regatta("submit", "--dry-run=server", "-", stdin=jobfiles.text(jobfiles.running(name)))

    shown = yaml.safe_load(said.out)
    assert shown["spec"]["runPolicy"]["restartScope"] == "Job"  # a default of the CRD's
    assert "managedFields" not in shown["metadata"]
    assert jobs.api.find(f"{jobs.path}/{name}") is None


def test_a_dry_run_by_the_server_shows_its_refusal(
    regatta: ClusterRegatta, jobs: Jobs, name: str
) -> None:
    quota(jobs)

    said = regatta("submit", "--dry-run=server", "-", stdin=jobfiles.text(jobfiles.running(name)))

    assert said.code == 2
    assert "quota: full" in said.err  # exceeded, or not counted yet: refused either way


def test_a_file_without_commands_is_no_trouble_on_a_cluster(
    regatta: ClusterRegatta, jobs: Jobs, name: str
) -> None:
    job = a_job(name).workers(1).document()
    del job["spec"]["worker"]["template"]["spec"]["containers"][0]["command"]

    said = regatta("submit", "-", stdin=yaml.safe_dump(job))

    assert said.code == 0, said
    jobs.wait_for_phase(name, "Running")


def quota(jobs: Jobs) -> None:
    """No more PaddleJobs in this namespace than there are."""
    count = "count/paddlejobs.batch.paddlepaddle.org"
    document: dict[str, Any] = {"metadata": {"name": "full"}, "spec": {"hard": {count: "0"}}}
    jobs.api.create(f"{jobs.core}/resourcequotas", document)

    def in_force() -> bool:
        seen = jobs.api.get(f"{jobs.core}/resourcequotas/full")
        return count in seen.get("status", {}).get("hard", {})

    eventually(in_force, "the quota to be in force")
