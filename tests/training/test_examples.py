"""The examples, run as their READMEs say: by `regatta run`, on real PaddlePaddle."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .conftest import Regatta


def test_hello_completes_after_its_roles_talked(regatta: Regatta) -> None:
    hello = regatta.run("hello/job.yaml")
    assert hello.returncode == 0, hello.stdout + hello.stderr
    assert "all 2 rowers seen: hello, regatta" in hello.stdout
    assert regatta.job("hello")["status"]["phase"] == "Completed"


@pytest.mark.training
def test_wide_and_deep_workers_know_what_only_the_other_trained(
    regatta: Regatta, paddle_python: Path
) -> None:
    run = regatta.run("wide_and_deep/job.yaml", "--python", paddle_python)
    assert run.returncode == 0, run.stdout + run.stderr
    results = re.findall(
        r"worker (\d): loss (\S+) -> (\S+), auc on ids of worker (\d): (\S+) "
        r"\(on ids nobody trained: (\S+)\)",
        regatta.log("wide-and-deep"),
    )
    assert sorted((worker, other) for worker, _, _, other, _, _ in results) == [
        ("0", "1"),
        ("1", "0"),
    ]
    for _, first, last, _, others, nobodys in results:
        assert float(last) < float(first)
        assert float(others) >= 0.8
        assert float(nobodys) < 0.7  # the numbers alone say little: it must be the ids

    # Its job file says cleanPodPolicy: Never, so the servers outlive their workers.
    row = regatta("get").stdout.splitlines()[1].split()
    assert row[:5] == ["wide-and-deep", "Completed", "PS", "2/2", "0/2"]


@pytest.mark.training
def test_wide_and_deep_fails_when_nobody_shares(regatta: Regatta, paddle_python: Path) -> None:
    """A worker alone with half of the data learns it well, and nothing about the other half."""
    run = regatta.run(
        "wide_and_deep/job.yaml",
        *("--python", paddle_python, "--env", "SHARD=0/2"),
        *("--set", "spec.ps.replicas=1", "--set", "spec.worker.replicas=1"),
    )
    assert run.returncode != 0, run.stdout
    status = regatta.job("wide-and-deep")["status"]
    assert status["phase"] == "Failed"
    assert "is too low for parameters that are shared" in regatta.log("wide-and-deep")


@pytest.mark.training
@pytest.mark.parametrize(
    ("job_file", "name"),
    [
        pytest.param("resnet/job.yaml", "resnet", id="started directly"),
        pytest.param("resnet/job-launch.yaml", "resnet-launch", id="through Paddle's launcher"),
    ],
)
def test_resnet_workers_end_with_the_same_parameters(
    regatta: Regatta, paddle_python: Path, job_file: str, name: str
) -> None:
    run = regatta.run(job_file, "--python", paddle_python)
    assert run.returncode == 0, run.stdout + run.stderr
    log = regatta.log(name)
    began = re.findall(r"worker (\d): starts at step 0 with parameters (\w+)", log)
    ended = re.findall(
        r"worker (\d): loss \S+ -> \S+, parameters (\w+), bit for bit equal on 2 workers", log
    )
    assert {worker for worker, _ in began} == {worker for worker, _ in ended} == {"0", "1"}
    assert len({parameters for _, parameters in began}) == 2
    assert len({parameters for _, parameters in ended}) == 1


@pytest.mark.training
def test_resnet_reports_its_progress(regatta: Regatta, paddle_python: Path) -> None:
    run = regatta.run("resnet/job.yaml", "--python", paddle_python, "--env", "STEPS=80")
    assert run.returncode == 0, run.stdout + run.stderr
    progress = regatta.job("resnet")["status"]["progress"]
    assert (progress["step"], progress["total"]) == (80, 80)
    assert progress["metrics"]["loss"] < 1


@pytest.mark.training
def test_resnet_fails_when_nobody_shares(regatta: Regatta, paddle_python: Path) -> None:
    run = regatta.run("resnet/job.yaml", "--python", paddle_python, "--env", "SHARE=0")
    assert run.returncode != 0, run.stdout
    assert regatta.job("resnet")["status"]["phase"] == "Failed"
    assert "workers ended with different parameters" in regatta.log("resnet")


@pytest.mark.training
def test_paddles_own_check_passes_through_its_launcher(
    regatta: Regatta, paddle_python: Path
) -> None:
    run = regatta.run("simple/job.yaml", "--python", paddle_python)
    assert run.returncode == 0, run.stdout + run.stderr
    log = regatta.log("simple")
    assert log.count("Prepare distributed training with 2 nodes") == 2
    assert log.count("Distributed training completed") == 2
