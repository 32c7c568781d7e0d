"""`logs` and `run` on a cluster with a real node: real programs, real logs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.doors import eventually
from tests.kubernetes.controlplane.access import Access
from tests.kubernetes.controlplane.images import base_image
from tests.kubernetes.controlplane.node import import_image
from tests.kubernetes.engine import jobfiles
from tests.kubernetes.engine.conftest import ClusterRegatta
from tests.kubernetes.faults.proxy import FaultProxy
from tests.kubernetes.operator.builders import JobBuilder, a_job
from tests.kubernetes.operator.conftest import install_crd
from tests.kubernetes.operator.running import Jobs, RunningOperator


@pytest.fixture(scope="module")
def image(real_cluster: Access) -> str:
    return import_image(base_image())


@pytest.fixture
def jobs(real_cluster: Access, real_namespace: str) -> Iterator[Jobs]:
    """An operator for one namespace: other tests have their own on the same cluster."""
    install_crd(real_cluster)  # type: ignore[arg-type]
    with RunningOperator(real_cluster.admin_kubeconfig, namespace=real_namespace):
        yield Jobs(real_cluster, real_namespace)  # type: ignore[arg-type]


@pytest.fixture
def regatta(jobs: Jobs, real_cluster: Access, tmp_path: Path) -> ClusterRegatta:
    return ClusterRegatta(tmp_path, real_cluster, jobs.namespace)


def shell(job: JobBuilder, image: str, role: str, script: str) -> JobBuilder:
    document = job.document()
    container = document["spec"][role]["template"]["spec"]["containers"][0]
    container |= {"image": image, "command": ["sh", "-c", script], "resources": {}}
    container["imagePullPolicy"] = "Never"
    return JobBuilder(document)


def a_shell_job(name: str, image: str, script: str, workers: int = 1) -> JobBuilder:
    return shell(a_job(name).workers(workers), image, "worker", script)


def let_go(jobs: Jobs, name: str, file: str) -> None:
    jobs.plane.touch_in(jobs.namespace, f"{name}-worker-0", file)


COUNTING = "for i in 1 2 3 4 5; do echo step $i of $PADDLE_TRAINER_ID; sleep 0.3; done"


def test_run_follows_every_replica_to_its_last_line(
    regatta: ClusterRegatta, image: str, name: str
) -> None:
    text = jobfiles.text(a_shell_job(name, image, COUNTING, workers=2))

    said = regatta("run", "-", stdin=text)

    assert said.code == 0, said
    for replica in (0, 1):
        lines = [line for line in said.out.splitlines() if line.startswith(f"worker-{replica} |")]
        assert lines == [f"worker-{replica} | step {i} of {replica}" for i in range(1, 6)], said
    assert "worker-1   Succeeded   0" in said.out  # although its pod is cleaned by now
    assert f"job {name} Completed" in said.out


def test_run_ends_with_the_failure_and_what_was_said_last(
    regatta: ClusterRegatta, image: str, name: str
) -> None:
    text = jobfiles.text(a_shell_job(name, image, "echo no data here; exit 3"))

    said = regatta("run", "-", stdin=text)

    assert said.code == 1, said
    assert "worker-0 failed first with exit code 3; its last lines:\n    no data here" in said.out


def test_logs_can_be_chosen_cut_and_searched(
    regatta: ClusterRegatta, jobs: Jobs, image: str, name: str
) -> None:
    script = "for i in 1 2 3 4; do echo line $i; done"
    job = a_shell_job(name, image, script, workers=2).spec(cleanPodPolicy="Never")
    jobs.create(job)
    jobs.wait_for_phase(name, "Completed", 120)

    def logs(*words: str) -> list[str]:
        said = regatta("logs", name, *words)
        assert said.code == 0, said
        return said.out.splitlines()

    whole = logs()
    assert sorted(whole) == sorted(f"worker-{r} | line {i}" for r in (0, 1) for i in (1, 2, 3, 4))
    assert logs("--index", "1", "--tail", "2") == ["worker-1 | line 3", "worker-1 | line 4"]
    assert logs("--index", "0", "--grep", "[12]$") == ["worker-0 | line 1", "worker-0 | line 2"]
    assert logs("--index", "0", "--grep", "[12]$", "--tail", "1") == ["worker-0 | line 2"]
    assert logs("--since", "1h", "--index", "0", "-f") == whole_of(0)
    (first, *_) = logs("--index", "0", "-o", "json")
    assert json.loads(first).keys() == {"replica", "at", "stream", "text"}
    times = [json.loads(line)["at"] for line in logs("-o", "json")]
    assert times == sorted(times)


def whole_of(replica: int) -> list[str]:
    return [f"worker-{replica} | line {i}" for i in (1, 2, 3, 4)]


def test_logs_of_a_role_that_is_not_there_and_of_pods_that_were_cleaned(
    regatta: ClusterRegatta, jobs: Jobs, image: str, name: str
) -> None:
    jobs.create(a_shell_job(name, image, "echo hello"))
    jobs.wait_for_phase(name, "Completed", 120)
    jobs.wait_for_pods(name, lambda pods: not pods, "no pods")

    cleaned, wrong = regatta("logs", name), regatta("logs", name, "--role", "ps")

    assert (cleaned.code, cleaned.out) == (0, "")
    assert "no longer there (cleanPodPolicy: OnCompletion): worker-0" in cleaned.err
    assert wrong.code == 4
    assert "Its roles are worker" in wrong.err


def test_following_goes_on_through_restarts_in_place(
    regatta: ClusterRegatta, jobs: Jobs, image: str, name: str
) -> None:
    script = (
        "n=$(cat /state/n 2>/dev/null || echo 0); echo $((n+1)) > /state/n; echo try $n; "
        "while test $n != 2 -a ! -e /state/end-$n; do sleep 0.1; done; test $n = 2"
    )
    job = a_shell_job(name, image, script).pod(
        "worker", restartPolicy="OnFailure", volumes=[{"name": "state", "emptyDir": {}}]
    )
    document = job.spec(cleanPodPolicy="Never").document()
    container = document["spec"]["worker"]["template"]["spec"]["containers"][0]
    container["volumeMounts"] = [{"name": "state", "mountPath": "/state"}]
    jobs.create(document)

    following = regatta.start("logs", "-f", name)
    assert following.stdout is not None
    assert following.stdout.readline() == "worker-0 | try 0\n"
    let_go(jobs, name, "/state/end-0")
    assert following.stdout.readline() == "worker-0 | try 1\n"
    # Its log is there before the pod's status tells that there was a run before.
    before = eventually(lambda: regatta("logs", name, "--previous").out, "the run before")
    assert before == "worker-0 | try 0\n"

    let_go(jobs, name, "/state/end-1")
    out, err = following.communicate(timeout=100)

    assert (following.returncode, out, err) == (0, "worker-0 | try 2\n", "")


def test_servers_that_run_on_do_not_hold_a_follower(
    regatta: ClusterRegatta, jobs: Jobs, image: str, name: str
) -> None:
    job = a_job(name).with_ps(1).workers(1).spec(cleanPodPolicy="Never", withGloo=0)
    job = shell(job, image, "ps", "echo serving; sleep 600")
    waits = "while [ ! -e /tmp/go ]; do sleep 0.1; done; echo trained"
    jobs.create(shell(job, image, "worker", waits))

    following = regatta.start("logs", "-f", name)
    assert following.stdout is not None
    assert following.stdout.readline().split() == ["ps-0", "|", "serving"]
    let_go(jobs, name, "/tmp/go")
    out, err = following.communicate(timeout=100)

    assert (following.returncode, out.split(), err) == (0, ["worker-0", "|", "trained"], "")
    running = jobs.pods(name)[f"{name}-ps-0"]
    assert running["status"]["phase"] == "Running"


def test_a_deleted_job_ends_its_followers(
    regatta: ClusterRegatta, jobs: Jobs, image: str, name: str
) -> None:
    jobs.create(a_shell_job(name, image, "echo here; sleep 600"))
    following = regatta.start("logs", "-f", name)
    assert following.stdout is not None
    assert following.stdout.readline() == "worker-0 | here\n"

    jobs.delete(name)

    out, err = following.communicate(timeout=100)
    assert (following.returncode, out, err) == (0, "", "")


def test_a_follower_whose_connections_break_misses_and_repeats_nothing(
    regatta: ClusterRegatta, jobs: Jobs, image: str, name: str, tmp_path: Path
) -> None:
    script = "for i in $(seq 1 60); do echo line $i; sleep 0.05; done"
    job = a_shell_job(name, image, script, workers=2).spec(cleanPodPolicy="Never")
    with FaultProxy(regatta.kubeconfig, tmp_path) as proxy:
        regatta.environment["KUBECONFIG"] = str(proxy.kubeconfig)
        jobs.create(job)
        following = regatta.start("logs", "-f", name)
        assert following.stdout is not None
        lines = []
        for line in following.stdout:
            lines.append(line.rstrip())
            if len(lines) in (20, 60, 100):
                proxy.drop_connections()
        err = following.communicate(timeout=100)[1]

    assert following.returncode == 0
    # That the cluster was away may be told, and nothing else.
    assert set(err.splitlines()) <= {"-- the cluster is away; looking for it"}
    for replica in (0, 1):
        told = [line for line in lines if line.startswith(f"worker-{replica} ")]
        assert told == [f"worker-{replica} | line {i}" for i in range(1, 61)]
