"""Paddle's own launcher under ours: what its trainers say reaches the log, to the last line."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from .conftest import PATIENCE_SECONDS, Regatta

TRAINER = """
import signal, sys, time

def save(*_):
    print("checkpoint saved", flush=True)
    sys.exit(0)

signal.signal(signal.SIGTERM, save)
print("step 1", flush=True)
time.sleep(600)
"""

JOB = """
apiVersion: batch.paddlepaddle.org/v1
kind: PaddleJob
metadata: {name: polite}
spec:
  worker:
    replicas: 1
    template:
      spec:
        containers:
          - name: paddle
            image: unused
            command: [python, -m, paddle.distributed.launch, train.py]
"""


@pytest.mark.training
def test_what_a_trainer_says_when_it_is_stopped_reaches_the_log(
    regatta: Regatta, paddle_python: Path, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(TRAINER)
    (tmp_path / "job.yaml").write_text(JOB)
    submitted = regatta("submit", tmp_path / "job.yaml", "--python", paddle_python)
    assert submitted.returncode == 0, submitted.stderr
    deadline = time.monotonic() + PATIENCE_SECONDS
    while "| step 1" not in regatta.log("polite"):
        assert time.monotonic() < deadline, regatta.log("polite")
    assert regatta("stop", "polite").returncode == 0
    assert regatta("logs", "-f", "polite").returncode == 0
    said = regatta.log("polite").splitlines()
    assert [line for line in said if line.endswith(("step 1", "saved"))] == [
        "worker-0 | step 1",
        "worker-0 | checkpoint saved",
    ]
