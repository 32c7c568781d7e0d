"""A network that misbehaves in every way we know of: jobs still end right."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from regatta.engines.kubernetes.api.client import ClientSettings
from regatta.engines.kubernetes.cache.informer import InformerSettings
from tests.kubernetes.controlplane.kwok import exits
from tests.kubernetes.faults.proxy import FaultProxy
from tests.kubernetes.faults.rules import (
    Drop,
    DropAfterCommit,
    DropAfterParts,
    ErrorEvent,
    Fault,
    Refuse,
    RefuseAfterCommit,
    Rule,
    SilenceAfterParts,
    SlowParts,
    Stall,
)
from tests.kubernetes.operator.builders import a_job
from tests.kubernetes.operator.running import Jobs, RunningOperator
from tests.patience import Patience

PATIENCE = {
    "informer": InformerSettings(silence_seconds=5.0, first_pause_seconds=0.1),
    "client": ClientSettings(request_seconds=3.0),
}

WRITES: dict[str, Fault] = {
    "the connection is dropped before a write": Drop(),
    "the connection is dropped after a write": DropAfterCommit(),
    "a write is refused with 429": Refuse(429, "TooManyRequests", retry_after=1),
    "a write is refused with 500": Refuse(500, "InternalError"),
    "a write answers 500 although it was done": RefuseAfterCommit(500),
    "a write stalls for longer than we wait": Stall(5.0),
}
WATCHES: dict[str, Fault] = {
    "a watch breaks off": DropAfterParts(2),
    "a watch is answered with 410": Refuse(410, "Expired"),
    "a watch ends in a 410 event": ErrorEvent(1, 410, "Expired"),
    "a watch falls silent": SilenceAfterParts(2),
    "a watch is slow": SlowParts(0.3),
}


def run_a_job(left: Jobs, proxy: FaultProxy) -> None:
    with RunningOperator(proxy.kubeconfig, namespace=left.namespace, **PATIENCE) as operator:
        jobs = [a_job(f"job-{n}").with_ps(1).workers(2, **exits(0, after="1s")) for n in range(2)]
        jobs.append(a_job("job-2").workers(2, **exits(3)).policy(backoffLimit=1))
        for job in jobs:
            left.create(job)
        for number in range(2):
            status = left.wait_for_phase(f"job-{number}", "Completed")
            assert status.get("attempt", 0) == 0, "nothing was lost, so nothing began again"
            left.wait_for_pods(f"job-{number}", lambda pods: not pods, "no orphans")
            assert left.environment(f"job-{number}", 2) is None, "one environment, not two"
        status = left.wait_for_phase("job-2", "Failed")
        assert status["restarts"] == 1, f"each failure counted once: {status}"
        # kwok deletes by name: now and then it takes the successor of the pod that it was told of.
        assert status["attempt"] == 1 + len(status.get("disruptions", ())), status
        assert operator.failure is None


@pytest.mark.parametrize("resource", ["pods", "paddlejobs", "configmaps"])
@pytest.mark.parametrize("what", WRITES)
def test_a_broken_write_is_neither_lost_nor_done_twice(
    left: Jobs, tmp_path: Path, what: str, resource: str
) -> None:
    with FaultProxy(left.plane.admin_kubeconfig, tmp_path) as proxy:
        for method in ("POST", "PUT", "PATCH", "DELETE"):
            proxy.add(Rule(WRITES[what], method=method, path=f"/{resource}", times=2))
        run_a_job(left, proxy)


@pytest.mark.parametrize("resource", ["pods", "paddlejobs"])
@pytest.mark.parametrize("what", WATCHES)
def test_a_broken_watch_hides_nothing(left: Jobs, tmp_path: Path, what: str, resource: str) -> None:
    with FaultProxy(left.plane.admin_kubeconfig, tmp_path) as proxy:
        proxy.add(Rule(WATCHES[what], method="GET", path=rf"/{resource}\?.*watch=true", times=3))
        run_a_job(left, proxy)


def test_a_network_that_stands_still_for_thirty_seconds_is_waited_for(
    left: Jobs, tmp_path: Path
) -> None:
    with (
        FaultProxy(left.plane.admin_kubeconfig, tmp_path) as proxy,
        RunningOperator(proxy.kubeconfig, namespace=left.namespace, **PATIENCE),
    ):
        left.create(a_job("job").with_ps(1).workers(2))
        left.wait_for_phase("job", "Running")
        proxy.freeze()
        left.ends("job-worker-0")
        left.ends("job-worker-1")
        time.sleep(30)
        proxy.restore()
        status = left.wait_for_phase("job", "Completed")
        assert status.get("attempt", 0) == 0


def test_an_api_server_that_restarts_is_found_again(left: Jobs, tmp_path: Path) -> None:
    with (
        FaultProxy(left.plane.admin_kubeconfig, tmp_path) as proxy,
        RunningOperator(proxy.kubeconfig, namespace=left.namespace, **PATIENCE),
    ):
        left.create(a_job("job").workers(2))
        left.wait_for_phase("job", "Running")
        proxy.cut()
        left.ends("job-worker-0", 1)
        proxy.restore()
        status = left.wait_for_phase("job", "Failed")
        assert status["failure"]["pod"] == "job-worker-0"


def test_a_restart_is_on_record_before_any_pod_is_taken_down(left: Jobs, tmp_path: Path) -> None:
    """Else an operator that dies in between has lost the count, and the reason with the pod."""
    with (
        FaultProxy(left.plane.admin_kubeconfig, tmp_path) as proxy,
        RunningOperator(proxy.kubeconfig, namespace=left.namespace, **PATIENCE),
    ):
        left.create(a_job("job").workers(2).policy(backoffLimit=1))
        left.wait_for_phase("job", "Running")
        before = {name: pod["metadata"]["uid"] for name, pod in left.pods("job").items()}
        refusal = proxy.add(
            Rule(Refuse(500, "InternalError"), method="PUT|PATCH", path="/status", times=None)
        )
        left.ends("job-worker-0", 3, message="out of luck")
        patience = Patience(60, lambda: refusal.struck)
        while refusal.struck < 3:
            assert not patience.over, "no status was tried"
            time.sleep(0.05)
        present = {name: pod["metadata"]["uid"] for name, pod in left.pods("job").items()}
        assert present == before, "nothing is deleted or created that is not on record"
        proxy.clear()
        status = left.wait("job", lambda s: s.get("restarts") == 1, "a counted restart")
        assert status["attempt"] == 1
        assert left.wait_for_phase("job", "Running")["restarts"] == 1


def test_pods_of_others_are_not_even_asked_for(left: Jobs, tmp_path: Path) -> None:
    with FaultProxy(left.plane.admin_kubeconfig, tmp_path) as proxy:
        every = r"/(pods|services|configmaps)\?"
        ours = proxy.add(Rule(SlowParts(0), "GET", every + ".*labelSelector=", times=None))
        all_of_them = proxy.add(Rule(SlowParts(0), "GET", every, times=None))
        run_a_job(left, proxy)
        assert ours.struck > 0
        assert all_of_them.struck == 0
