"""The training programs by themselves, without Regatta: they run, and they notice what is wrong."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from .conftest import EXAMPLES, PATIENCE_SECONDS

pytestmark = pytest.mark.training


def _train(python: Path, example: str, **settings: str) -> subprocess.CompletedProcess[str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    quiet = {"GLOG_minloglevel": "2", "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    return subprocess.run(
        [python, EXAMPLES / example / "train.py"],
        env=kept | quiet | settings,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )


def test_resnet_trains_alone_where_nothing_is_set(paddle_python: Path) -> None:
    alone = _train(paddle_python, "resnet")
    assert alone.returncode == 0, alone.stderr
    assert "worker 0: loss " in alone.stdout


def test_resnet_goes_on_from_its_checkpoint(paddle_python: Path, tmp_path: Path) -> None:
    checkpoint = str(tmp_path / "checkpoint")
    before = _train(paddle_python, "resnet", CHECKPOINT=checkpoint, STEPS="60")
    assert before.returncode == 0, before.stderr
    reached = before.stdout.split("parameters ")[-1].split()[0]

    after = _train(paddle_python, "resnet", CHECKPOINT=checkpoint, STEPS="70")
    assert after.returncode == 0, after.stderr
    assert f"starts at step 60 with parameters {reached}" in after.stdout
    assert "10 more steps" in after.stdout


def test_resnet_fails_when_the_loss_does_not_fall(paddle_python: Path) -> None:
    too_short = _train(paddle_python, "resnet", STEPS="5")
    assert too_short.returncode == 1
    assert "the loss did not fall" in too_short.stderr


def test_resnet_refuses_to_train_alone_in_a_job_of_two(paddle_python: Path) -> None:
    lost = _train(paddle_python, "resnet", PADDLE_NNODES="2", PADDLE_TRAINERS_NUM="1")
    assert lost.returncode == 1
    assert "the job has 2 workers, but 1 would train together" in lost.stderr
