"""The tutorial's jobs train for real, in pods from the examples' own images."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from regatta.engines.kubernetes.objects.annotations import RELEASED
from tests.kubernetes.training.container_images import WIDE_AND_DEEP
from tests.kubernetes.training.jobs import PATIENCE_SECONDS, TrainingJobs, a_short_job, example

#: Several tests may wait for one turn on the node.
pytestmark = pytest.mark.timeout(900)

HEADINGS = ["NAME", "STATUS", "MODE", "PS", "WORKER", "AGE"]


@pytest.mark.parametrize("intranet", ["PodIP", "Service"])
def test_wide_and_deep_workers_know_what_only_the_other_trained(
    jobs: TrainingJobs, intranet: str, tmp_path: Path
) -> None:
    with jobs.watched(tmp_path) as rows:
        name = jobs.apply(f"wide_and_deep_{intranet.lower()}.yaml")
        status = jobs.wait_for_end(name)
    log = jobs.logs(name)
    assert status["phase"] == "Completed", f"{status}\n{log}"

    # What the workers found out about each other's ids, which only the servers can have told them.
    results = re.findall(
        r"worker (\d): loss (\S+) -> (\S+), auc on ids of worker (\d): (\S+) ", log
    )
    assert sorted((worker, other) for worker, _, _, other, _ in results) == [("0", "1"), ("1", "0")]
    for _, first, last, _, others in results:
        assert float(last) < float(first)
        assert float(others) >= 0.8

    # Where the servers are, in the way the job asked for.
    servers = [jobs.pods(name)[f"{name}-ps-{i}"] for i in range(2)]
    addresses = [pod["status"]["podIP"] for pod in servers]
    names = [pod["metadata"]["name"] for pod in servers]
    found = re.findall(r"holds its part of the parameters at (\S+):\d+", log)
    assert sorted(found) == sorted(addresses if intranet == "PodIP" else names)

    # What `kubectl get pdj` showed meanwhile; servers outlive their workers, as the file asks.
    assert rows[0] == HEADINGS
    seen = [row[:-1] for row in rows]
    assert [name, "Running", "PS", "2/2", "2/2"] in seen
    assert jobs.kubectl("get", "pdj", name).splitlines()[1].split()[:-1] == [
        *(name, "Completed", "PS", "2/2", "0/2")
    ]


def test_resnet_workers_end_with_the_same_parameters(jobs: TrainingJobs, tmp_path: Path) -> None:
    with jobs.watched(tmp_path) as rows:
        name = jobs.apply("resnet.yaml")
        status = jobs.wait_for_end(name)
    log = jobs.logs(name)
    assert status["phase"] == "Completed", f"{status}\n{log}"
    began = re.findall(r"worker (\d): starts at step 0 with parameters (\w+)", log)
    ended = re.findall(
        r"worker (\d): loss \S+ -> \S+, parameters (\w+), bit for bit equal on 2 workers", log
    )
    assert {worker for worker, _ in began} == {worker for worker, _ in ended} == {"0", "1"}
    assert len({parameters for _, parameters in began}) == 2
    assert len({parameters for _, parameters in ended}) == 1
    said = jobs.kubectl("wait", f"pdj/{name}", "--for=condition=Completed", "--timeout=60s")
    assert said == f"paddlejob.batch.paddlepaddle.org/{name} condition met\n"
    # No servers, so nothing stands in their column.
    assert [name, "Running", "Collective", "2/2"] in [row[:-1] for row in rows]


def test_a_job_that_was_scaled_goes_on_from_its_checkpoint(
    jobs: TrainingJobs, tmp_path: Path
) -> None:
    job = example("elastic.yaml")
    job["spec"]["cleanPodPolicy"] = "Never"  # its logs are read below
    (volume,) = job["spec"]["worker"]["template"]["spec"]["volumes"]
    volume["hostPath"]["path"] = str(tmp_path)
    jobs.create(job)
    checkpoint = tmp_path / "resnet"
    jobs.wait("resnet-elastic", lambda _: checkpoint.exists(), "a checkpoint", PATIENCE_SECONDS)
    jobs.kubectl("scale", "pdj/resnet-elastic", "--replicas=2")
    status = jobs.wait_for_end("resnet-elastic")
    log = jobs.logs("resnet-elastic")
    assert status["phase"] == "Completed", f"{status}\n{log}"
    began = re.findall(r"worker (\d): starts at step (\d+) ", log)
    assert sorted(worker for worker, _ in began) == ["0", "1"]
    assert all(int(step) >= 10 for _, step in began)
    ended = re.findall(r"worker \d: \d+ more steps, parameters (\w+), bit for bit equal on 2", log)
    assert len(ended) == 2
    assert len(set(ended)) == 1


def test_pods_start_as_soon_as_their_peers_are_known(jobs: TrainingJobs) -> None:
    """Others that wait for the same ConfigMap, but are not told, start when the kubelet looks."""
    job = a_short_job("short", "true", replicas=2)
    job["spec"]["runPolicy"] = {"suspend": True}
    uid = jobs.create(job)["metadata"]["uid"]
    bystanders = [f"bystander-{i}" for i in range(4)]
    for name in bystanders:
        jobs.api.create(f"{jobs.core}/pods", a_pod_that_waits(name, f"short-env-1-{uid[:8]}"))
    for name in bystanders:
        jobs.api.wait_for(f"{jobs.core}/pods/{name}", is_held, what="its wait")
    jobs.change("short", runPolicy={"suspend": False})
    jobs.wait_for_end("short")
    started = {name: start_of(jobs, name) for name in ("short-worker-0", "short-worker-1")}
    for name in started:
        assert jobs.pods()[name]["metadata"]["annotations"][RELEASED] == "1"
    # Any of these may be looked at in the right moment by chance, but hardly all of them.
    assert max(started.values()) < max(start_of(jobs, name) for name in bystanders)


def test_a_failed_job_tells_its_exit_code_and_its_last_words(jobs: TrainingJobs) -> None:
    jobs.create(a_short_job("broken", "echo reading /data/clicks; echo no such file; exit 3"))
    status = jobs.wait_for_end("broken")
    assert status["phase"] == "Failed"
    assert status["message"].startswith("broken-worker-0 exited with code 3")
    assert status["failure"]["message"] == "reading /data/clicks\nno such file\n"


def a_pod_that_waits(name: str, config_map: str) -> dict[str, object]:
    container = {
        "name": "main",
        "image": WIDE_AND_DEEP,
        "imagePullPolicy": "IfNotPresent",
        "command": ["true"],
        "envFrom": [{"configMapRef": {"name": config_map}}],
    }
    return {
        "metadata": {"name": name},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }


def is_held(pod: Any) -> bool:
    statuses = pod["status"].get("containerStatuses", [])
    waiting = [status["state"].get("waiting", {}) for status in statuses]
    return any(held.get("reason") == "CreateContainerConfigError" for held in waiting)


def start_of(jobs: TrainingJobs, pod: str) -> str:
    """When its process started, as the kubelet wrote it; such times sort as text."""
    ended = jobs.api.wait_for(
        f"{jobs.core}/pods/{pod}",
        lambda seen: seen["status"].get("phase") in ("Succeeded", "Failed"),
        what="its end",
        deadline_seconds=120,
    )
    terminated = ended["status"]["containerStatuses"][0]["state"]["terminated"]
    return str(terminated["startedAt"])
