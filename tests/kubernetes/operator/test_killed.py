"""The operator killed at any moment: no count lost, nothing made twice, nothing left behind."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import pytest

from tests.kubernetes.controlplane.kwok import exits
from tests.kubernetes.operator.builders import a_job
from tests.kubernetes.operator.running import Jobs, operator_process
from tests.patience import Patience

JOBS = 100
KILLS = 50


def the_job(number: int) -> dict[str, Any]:
    """Nine of ten end well; every tenth fails in each of its two attempts."""
    code = 3 if number % 10 == 0 else 0
    job = a_job(f"job-{number}").with_ps(1).workers(2, **exits(code, after="1s"))
    return job.policy(backoffLimit=1).document()


@pytest.mark.timeout(1800)
def test_jobs_end_right_although_the_operator_is_killed_fifty_times(
    left: Jobs, tmp_path: Path
) -> None:
    moments = random.Random(20240)
    log = tmp_path / "operator.log"
    kubeconfig = left.plane.admin_kubeconfig
    waiting = list(range(JOBS))
    for _ in range(KILLS):
        begun = _starts(log)
        with operator_process(kubeconfig, log, "--namespace", left.namespace):
            for number in waiting[: JOBS // KILLS]:
                left.create(the_job(number))
            del waiting[: JOBS // KILLS]
            if moments.random() < 0.8:  # the others are killed on their way up
                _wait_for_one_more_start(log, begun)
            time.sleep(moments.uniform(0.0, 1.4))
    with operator_process(kubeconfig, log, "--namespace", left.namespace):
        for number in range(JOBS):
            name = f"job-{number}"
            failing = number % 10 == 0
            status = left.wait_for_phase(name, "Failed" if failing else "Completed")
            assert status.get("restarts", 0) == (1 if failing else 0), name
            # kwok deletes by name: now and then it takes the successor of the pod it was told of.
            lost = len(status.get("disruptions", ()))
            assert status.get("attempt", 0) == (1 + lost if failing else 0), status
            if not failing:
                left.wait_for_pods(f"{name}", _none_of(name), "cleaned pods")
    _nothing_is_left_over(left)
    said = log.read_text()
    assert "Traceback" not in said, said[-4000:]


def _wait_for_one_more_start(log: Path, begun: int) -> None:
    """Until an operator that was started a moment ago has read what there is: how long that takes
    is the machine's business, and one that never got so far would have done nothing."""
    patience = Patience(120)
    while _starts(log) == begun:
        assert not patience.over, log.read_text()[-4000:]
        time.sleep(0.02)


def _starts(log: Path) -> int:
    return log.read_text().count('"watching ') if log.exists() else 0


def _none_of(name: str) -> Any:
    return lambda pods: not any(pod.rsplit("-", 2)[0] == name for pod in pods)


def _nothing_is_left_over(jobs: Jobs) -> None:
    owners = {job["metadata"]["uid"]: job for job in jobs.api.items(jobs.path)}
    assert len(owners) == JOBS
    for pod in jobs.pods().values():
        assert pod["metadata"]["ownerReferences"][0]["uid"] in owners
    written: dict[str, int] = {}
    for environment in jobs.api.items(f"{jobs.core}/configmaps"):
        for reference in environment["metadata"].get("ownerReferences", ()):
            written[reference["uid"]] = written.get(reference["uid"], 0) + 1
    # None at all where the pods, which kwok does not hold back, ended while no operator ran.
    for uid, job in owners.items():
        assert written.get(uid, 0) <= job["status"].get("revision", 0)
