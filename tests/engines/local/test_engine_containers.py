"""Jobs in containers, run by a real podman: what they see, what they may use, and how they end."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from regatta.api.errors import PreflightFailed
from regatta.api.job import Job, Phase
from regatta.engines.base import LogQuery
from regatta.engines.blocking import Blocking
from regatta.engines.local.home import Home
from regatta.engines.local.replicas.runspec import run_folder
from regatta.engines.local.replicas.runtime import Runtime
from tests.engines.local import jobs
from tests.engines.local.jobs import (
    a_job,
    a_role,
    a_submission,
    eventually,
    pods_of,
    texts,
    wait_for,
    wait_until_quiet,
)
from tests.engines.local.opening import OpenEngine
from tests.engines.local.podman import IMAGE, Podman, open_podman

#: Long past what a test waits: who ends sooner was ended by the stop itself.
NEVER = 3600
EATS_MEMORY = "x=aaaaaaaaaaaaaaaa; while :; do x=$x$x; done"


@pytest.fixture(scope="module")
def store() -> Iterator[Podman]:
    """In a folder with a short name: with one of more than 50 letters podman does not hear how a
    container ended, and waits for twenty seconds."""
    with tempfile.TemporaryDirectory(prefix="podman-") as folder:
        podman = open_podman(Path(folder))
        yield podman
        podman.close()


@pytest.fixture
def podman(store: Podman) -> Podman:
    assert store.containers() == []
    return store


def in_containers(document: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """The same job, its containers with the tests' image and these fields."""
    for role in ("ps", "worker"):
        if role in document["spec"]:
            spec = document["spec"][role]["template"]["spec"]
            spec["terminationGracePeriodSeconds"] = NEVER
            for container in spec["containers"]:
                container.update({"image": IMAGE, **fields})
    return document


def submit(engine: Blocking, podman: Podman, document: dict[str, Any]) -> Job:
    return jobs.submit(engine, document, runtime="podman", environment=podman.environment)


def lines_of(engine: Blocking, name: str) -> list[str]:
    return texts(engine.logs("default", name, LogQuery()))


def says(engine: Blocking, name: str, text: str) -> None:
    eventually(lambda: text in lines_of(engine, name), f"{name} saying {text!r}")


def supervisor_of(home: Home, engine: Blocking, name: str) -> int:
    pod = pods_of(engine, name)[-1]
    folder = run_folder(home.pod(engine.get("default", name).uid, pod.uid), 1)
    supervisor = Runtime().inspect(folder).supervisor
    assert supervisor is not None
    return supervisor


# -- what it sees -----------------------------------------------------------------------------


def test_the_shells_settings_reach_the_runtime_and_not_the_container(
    engine: Blocking, podman: Podman
) -> None:
    document = a_job("env", "env; echo that is all")
    environment = podman.environment | {"HTTPS_PROXY": "http://127.0.0.1:9", "DOCKER_HOST": "x"}
    jobs.submit(engine, in_containers(document), runtime="podman", environment=environment)
    wait_for(engine, "env", Phase.COMPLETED)
    seen = dict(line.partition("=")[::2] for line in lines_of(engine, "env"))
    assert seen["PADDLE_TRAINER_ID"] == "0"
    assert "that is all" in seen
    assert not {"CONTAINERS_CONF", "CONTAINERS_STORAGE_CONF", "DOCKER_HOST"} & set(seen)
    assert "https_proxy" not in {name.lower() for name in seen}
    assert seen["HOME"] != environment["HOME"]


def test_a_dry_run_shows_what_the_container_would_see_and_does_not_call_its_image_ignored(
    engine: Blocking, podman: Podman
) -> None:
    document = in_containers(a_job("paper"), imagePullPolicy="Never")
    submission, shell = a_submission(document, runtime="podman", environment=podman.environment)
    preview = engine.preview(submission, shell)
    assert not [note for note in preview.notes if "image" in note]
    seen = preview.environment["paper-worker-0"]
    assert seen["PADDLE_TRAINER_ID"] == "0"
    assert "CONTAINERS_CONF" not in seen


# -- which image ------------------------------------------------------------------------------


def test_an_image_that_is_not_here_and_may_not_be_pulled_is_refused(
    engine: Blocking, podman: Podman
) -> None:
    document = in_containers(a_job("none"), image="127.0.0.1:9/none:1", imagePullPolicy="Never")
    with pytest.raises(PreflightFailed) as refused:
        submit(engine, podman, document)
    [problem] = refused.value.problems
    assert problem.path == "worker"
    assert "127.0.0.1:9/none:1 is not in podman's store" in problem.message
    assert "imagePullPolicy is Never" in problem.message
    assert "podman pull 127.0.0.1:9/none:1" in problem.message


def test_an_image_that_cannot_be_pulled_is_refused_with_what_the_runtime_says(
    engine: Blocking, podman: Podman
) -> None:
    with pytest.raises(PreflightFailed) as refused:
        submit(engine, podman, in_containers(a_job("nowhere"), image="127.0.0.1:9/none:1"))
    assert "connection refused" in refused.value.problems[0].message


def test_an_image_that_can_be_pulled_is(engine: Blocking, podman: Podman, tmp_path: Path) -> None:
    place = f"docker-archive:{tmp_path}/tiny.tar"
    podman("tag", IMAGE, "regatta.test/pulled:1")
    podman("save", "--output", f"{tmp_path}/tiny.tar", "regatta.test/pulled:1")
    podman("untag", IMAGE, "regatta.test/pulled:1")
    submit(engine, podman, in_containers(a_job("pulled", "echo here"), image=place))
    wait_for(engine, "pulled", Phase.COMPLETED)
    assert "here" in lines_of(engine, "pulled")


# -- what it may use --------------------------------------------------------------------------


def test_who_takes_more_memory_than_its_limit_is_ended_and_its_neighbour_is_not(
    engine: Blocking, podman: Podman, tmp_path: Path
) -> None:
    volume = {"volumes": [{"name": "v", "hostPath": {"path": str(tmp_path)}}]}
    neighbour = in_containers(
        a_job("neighbour"),
        command=["sh", "-c", "echo up; until [ -e /v/go ]; do sleep 0.1; done"],
        volumeMounts=[{"name": "v", "mountPath": "/v"}],
        resources={"limits": {"memory": "64Mi", "cpu": "500m"}},
    )
    neighbour["spec"]["worker"]["template"]["spec"] |= volume
    submit(engine, podman, neighbour)
    says(engine, "neighbour", "up")
    limits = "{{.HostConfig.Memory}} {{.HostConfig.MemorySwap}} {{.HostConfig.NanoCpus}}"
    given = podman("inspect", "--format", limits, *podman.containers())
    assert given == f"{64 << 20} {64 << 20} 500000000"

    greedy = a_job("greedy", EATS_MEMORY)
    submit(engine, podman, in_containers(greedy, resources={"limits": {"memory": "64Mi"}}))
    failure = wait_for(engine, "greedy", Phase.FAILED).status.failure
    assert failure is not None
    assert (failure.reason, failure.exit_code) == ("OOMKilled", 137)
    assert "64Mi" in pods_of(engine, "greedy")[0].message

    (tmp_path / "go").touch()
    wait_for(engine, "neighbour", Phase.COMPLETED)


def test_half_a_core_is_half_a_core_in_a_container(engine: Blocking, podman: Podman) -> None:
    spins = a_job("half", "echo up; while :; do :; done")
    submit(engine, podman, in_containers(spins, resources={"limits": {"cpu": "0.5"}}))
    says(engine, "half", "up")
    first = int(podman("inspect", "--format", "{{.State.Pid}}", *podman.containers()))
    before, began = processor_seconds(first), time.monotonic()
    eventually(lambda: processor_seconds(first) - before >= 1, "a second of a processor")
    used, passed = processor_seconds(first) - before, time.monotonic() - began
    # On a busy machine it may get less; a period of 0.1 s may begin and end with its share.
    assert used <= 0.5 * (passed + 0.2), (used, passed)


def processor_seconds(pid: int) -> float:
    """Of a process and all that it started and that is there."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    own = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return own + sum(map(processor_seconds, map(int, children)))


# -- how it ends ------------------------------------------------------------------------------


def test_a_program_that_does_not_heed_a_stop_ends_by_it_as_any_process_does(
    engine: Blocking, podman: Podman
) -> None:
    """The first process of a container is deaf to signals that it has not asked for."""
    submit(engine, podman, in_containers(a_job("deaf", "echo up; sleep 3600; true")))
    says(engine, "deaf", "up")
    engine.stop("default", "deaf")
    [ended] = wait_until_quiet(engine, "deaf")
    assert ended.exit_code == 128 + signal.SIGTERM


def test_a_program_that_heeds_a_stop_has_its_time(engine: Blocking, podman: Podman) -> None:
    script = "trap 'sleep 0.5; echo saved; exit 0' TERM; echo up; while :; do sleep 0.1; done"
    submit(engine, podman, in_containers(a_job("polite", script)))
    says(engine, "polite", "up")
    engine.stop("default", "polite")
    [ended] = wait_until_quiet(engine, "polite")
    assert ended.exit_code == 0
    assert "saved" in lines_of(engine, "polite")


def test_a_program_that_ignores_a_stop_is_killed_when_its_time_is_over(
    engine: Blocking, podman: Podman
) -> None:
    document = in_containers(a_job("stubborn", "trap '' TERM; echo up; sleep 3600; true"))
    document["spec"]["worker"]["template"]["spec"]["terminationGracePeriodSeconds"] = 1
    submit(engine, podman, document)
    says(engine, "stubborn", "up")
    engine.stop("default", "stubborn")
    wait_until_quiet(engine, "stubborn")
    assert podman.containers() == []


def test_the_servers_of_a_job_that_is_done_end_with_it(engine: Blocking, podman: Podman) -> None:
    document = a_job("ps", "sleep 0.5", withGloo=0)
    document["spec"]["ps"] = a_role("sleep 3600; true")
    submit(engine, podman, in_containers(document))
    wait_for(engine, "ps", Phase.COMPLETED)
    wait_until_quiet(engine, "ps")
    eventually(lambda: podman.containers() == [], "the end of the containers")


def test_deleting_a_job_leaves_no_container(engine: Blocking, podman: Podman) -> None:
    submit(engine, podman, in_containers(a_job("gone", "echo up; sleep 3600; true", 2)))
    eventually(lambda: lines_of(engine, "gone").count("up") == 2, "both being up")
    assert len(podman.containers()) == 2
    engine.delete("default", "gone")
    eventually(lambda: podman.containers() == [], "the end of the containers")


def test_a_container_whose_supervisor_was_killed_is_removed_by_the_next_engine(
    open_engine: OpenEngine, home: Home, podman: Podman
) -> None:
    first = open_engine()
    # Without its mark, nothing but its name in the runtime tells whose it is.
    script = "exec env -i /bin/sh -c 'echo up; exec sleep 3600'"
    submit(first, podman, in_containers(a_job("orphan", script)))
    says(first, "orphan", "up")
    [name] = podman.containers()
    inside = int(podman("inspect", "--format", "{{.State.Pid}}", name))
    supervisor = supervisor_of(home, first, "orphan")
    first.close()
    os.kill(supervisor, signal.SIGKILL)
    second = open_engine()
    job = wait_for(second, "orphan", Phase.FAILED)
    assert job.status.failure is not None
    assert job.status.failure.reason == "SupervisorLost"
    assert podman.containers() == []
    assert not jobs.alive(inside)
