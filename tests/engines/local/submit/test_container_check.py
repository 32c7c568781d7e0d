"""What is asked of a container runtime before a job is queued. The runtime is a script here; a real
one is asked in `test_engine_containers`."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from regatta.api.problems import Problem
from regatta.engines.local.replicas.runspec import Contained, Process, RunSpec
from regatta.engines.local.submit import container_check
from regatta.engines.local.submit.container_check import check_containers

#: It works, and has no image.
EMPTY = 'test "$1" = version || { echo $1 failed >&2; exit 1; }'


def in_container(folder: Path, script: str | None, pull: str = "missing") -> RunSpec:
    """A replica in docker, where `docker` is the given script or nowhere."""
    if script is not None:
        (folder / "docker").write_text(f"#!/bin/sh\necho $@ >> {folder}/asked\n{script}\n")
        (folder / "docker").chmod(0o755)
    process = Process(
        name="main",
        argv=("docker", "run", "image", "python", "train.py"),
        env={"PATH": str(folder)},
        cwd="/",
        cleanup=("docker", "rm", "x"),
        container=Contained(image="tiny:1", pull=pull, env={}, asks_out_of_memory=()),
    )
    return RunSpec(run_id="u/1", pod="p", folder="/nowhere", containers=(process,))


def check(run: RunSpec, may_pull: bool = True) -> tuple[list[Problem], list[Problem]]:
    return check_containers({"ps": run, "worker": run}, may_pull)


def refusal(run: RunSpec) -> str:
    [problem], warnings = check(run)
    assert warnings == []
    return problem.message


def warning(run: RunSpec, may_pull: bool = True) -> str:
    problems, [warned] = check(run, may_pull)
    assert problems == []
    assert warned.severity == "warning"
    return warned.message


def test_a_runtime_that_is_not_installed_is_refused(tmp_path: Path) -> None:
    message = refusal(in_container(tmp_path, None))
    assert "docker is not on the job's PATH" in message
    assert "leave --runtime out" in message


def test_a_runtime_that_does_not_answer_is_refused_with_what_it_says(tmp_path: Path) -> None:
    message = refusal(in_container(tmp_path, "echo Cannot connect to the daemon >&2; exit 1"))
    assert "docker does not work here (Cannot connect to the daemon)" in message


def test_a_runtime_that_hangs_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(container_check, "_RUNTIME_SECONDS", 0.5)
    assert "it said nothing" in refusal(in_container(tmp_path, "exec /bin/sleep 60"))


def test_a_runtime_that_has_the_image_is_asked_once(tmp_path: Path) -> None:
    assert check(in_container(tmp_path, "exit 0")) == ([], [])
    asked = (tmp_path / "asked").read_text().splitlines()
    assert asked == ["version", "image inspect --format here tiny:1"]


def test_an_image_that_may_not_be_pulled_must_be_here(tmp_path: Path) -> None:
    message = refusal(in_container(tmp_path, EMPTY, "never"))
    assert "image tiny:1 is not in docker's store, and imagePullPolicy is Never" in message
    assert "\npull" not in (tmp_path / "asked").read_text()


def test_an_image_that_cannot_be_pulled_is_refused(tmp_path: Path) -> None:
    message = refusal(in_container(tmp_path, EMPTY))
    assert "is not in docker's store, and cannot be pulled (pull failed)" in message
    assert "`docker pull tiny:1`" in message


def test_an_image_that_is_always_pulled_is_pulled_although_it_is_here(tmp_path: Path) -> None:
    script = 'test "$1" != pull || { echo no registry >&2; exit 1; }'
    message = refusal(in_container(tmp_path, script, "always"))
    assert "image tiny:1 is always pulled, and cannot be (no registry)" in message


def test_a_pull_that_takes_long_is_left_to_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(container_check, "_PULL_SECONDS", 1.0)
    slow = f'test "$1" != pull || exec /bin/sleep 60\n{EMPTY}'
    assert "docker goes on when the job starts" in warning(in_container(tmp_path, slow))


def test_a_dry_run_pulls_nothing(tmp_path: Path) -> None:
    run = in_container(tmp_path, EMPTY)
    assert "docker pulls it when the job is submitted" in warning(run, may_pull=False)
    assert "\npull" not in (tmp_path / "asked").read_text()


@pytest.mark.parametrize("image", ["", "--privileged"])
def test_what_is_refused_for_its_image_is_not_asked_about(tmp_path: Path, image: str) -> None:
    run = in_container(tmp_path, EMPTY)
    container = replace(run.containers[0].container, image=image)
    run = replace(run, containers=(replace(run.containers[0], container=container),))
    assert check(run, may_pull=False) == ([], [])
