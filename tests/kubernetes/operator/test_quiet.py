"""A settled cluster costs nothing."""

from __future__ import annotations

import time

import pytest

from regatta.engines.kubernetes.operator.leader import LeaderSettings
from tests.kubernetes.operator.builders import a_job
from tests.kubernetes.operator.running import Jobs, RunningOperator
from tests.patience import Patience

JOBS = 500
SECONDS = 60.0


def versions(jobs: Jobs) -> dict[str, str]:
    """As the API server counts changes. Not of pods: their nodes write to them too."""
    return {
        thing["metadata"]["uid"]: thing["metadata"]["resourceVersion"]
        for path in (jobs.path, f"{jobs.core}/configmaps")
        for thing in jobs.api.items(path)
    }


@pytest.mark.timeout(1800)
def test_five_hundred_settled_jobs_are_not_written_to_at_all(left: Jobs) -> None:
    """K13: every pass wrote the status, and every write caused another pass."""
    settings = {
        "namespace": left.namespace,
        "leader_elect": True,
        "lease_namespace": left.namespace,
        "leader": LeaderSettings(),
    }
    with RunningOperator(left.plane.admin_kubeconfig, **settings) as operator:
        for number in range(JOBS):
            left.create(_job(number))
        for number in range(JOBS):
            expected = "Completed" if number % 5 == 0 else "Running"
            left.wait_for_phase(f"job-{number}", expected)
        _until_nothing_moves(left, operator)
        before, written = versions(left), operator.writes()
        time.sleep(SECONDS)
        assert operator.writes() == written
        assert versions(left) == before
        assert operator.metric("regatta_api_requests_total", resource="leases") > 0


def _job(number: int) -> dict:
    job = a_job(f"job-{number}").workers(1)
    return (job.that_succeeds() if number % 5 == 0 else job).document()


def _until_nothing_moves(jobs: Jobs, operator: RunningOperator) -> None:
    patience = Patience(100)
    seen = (operator.writes(), versions(jobs))
    while True:
        time.sleep(3)
        now = (operator.writes(), versions(jobs))
        if now == seen:
            return
        seen = now
        assert not patience.over, "it never settles"
