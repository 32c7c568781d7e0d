"""Several operators: one works, another takes its place."""

from __future__ import annotations

import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

from regatta.engines.kubernetes.operator.health import Address
from tests.kubernetes.controlplane.processes import free_port
from tests.kubernetes.operator.builders import a_job
from tests.kubernetes.operator.running import Jobs, RunningOperator, operator_process
from tests.patience import Patience


def until(condition: Callable[[], bool], what: str, seconds: float = 30) -> None:
    patience = Patience(seconds)
    while not condition():
        assert not patience.over, f"{what}: not in {patience}"
        time.sleep(0.05)


def test_of_two_operators_one_leads_and_the_other_follows_it(
    left: Jobs,
) -> None:
    jobs, namespace = left, left.namespace
    settings = {"namespace": namespace, "leader_elect": True, "lease_namespace": namespace}
    kubeconfig = left.plane.admin_kubeconfig
    with RunningOperator(kubeconfig, **settings) as first:
        until(lambda: first.leads, "the first leads")
        with RunningOperator(kubeconfig, **settings) as second:
            jobs.create(a_job("one").workers(1).that_succeeds())
            jobs.wait_for_phase("one", "Completed")
            assert not second.leads
            assert second.writes() == 0
            first.stop()
            until(lambda: second.leads, "the second leads")
            jobs.create(a_job("two").workers(1).that_succeeds())
            jobs.wait_for_phase("two", "Completed")
            lease = jobs.api.get(
                f"/apis/coordination.k8s.io/v1/namespaces/{namespace}"
                "/leases/b2a304f2.paddlepaddle.org"
            )
            assert lease["spec"]["holderIdentity"] == second.operator.identity


def test_an_operator_that_is_told_not_to_elect_takes_no_lease(left: Jobs, tmp_path: Path) -> None:
    alone = ("--namespace", left.namespace, "--leader-elect=false")
    with operator_process(left.plane.admin_kubeconfig, tmp_path / "operator.log", *alone):
        left.create(a_job("job").workers(1).that_succeeds())
        left.wait_for_phase("job", "Completed")
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{left.namespace}/leases"
    assert left.api.items(leases) == []


def test_an_operator_of_one_namespace_leaves_the_others_alone(left: Jobs) -> None:
    other = Jobs(left.plane, left.plane.create_namespace(f"beside-{left.namespace}"))
    with RunningOperator(left.plane.admin_kubeconfig, namespace=left.namespace):
        other.create(a_job("job").workers(1))
        left.create(a_job("job").workers(1).that_succeeds())
        left.wait_for_phase("job", "Completed")
        assert not other.status("job")
        assert not other.pods("job")


def test_probes_and_metrics_say_how_the_operator_is(left: Jobs) -> None:
    jobs, namespace = left, left.namespace
    health, metrics = Address("127.0.0.1", free_port()), Address("127.0.0.1", free_port())

    def read(address: Address, path: str) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{address.port}{path}", timeout=5) as page:
            return str(page.read().decode())

    def ready() -> bool:
        try:
            return read(health, "/readyz") == "ok\n"
        except OSError:
            return False

    settings = {"namespace": namespace, "health_address": health, "metrics_address": metrics}
    with RunningOperator(left.plane.admin_kubeconfig, **settings):
        until(ready, "ready")
        assert read(health, "/healthz") == "ok\n"
        jobs.create(a_job("job").workers(1))
        jobs.wait_for_phase("job", "Running")
        jobs.ends("job-worker-0")
        jobs.wait_for_phase("job", "Completed")
        until(lambda: "regatta_jobs_completed_total 1.0" in read(metrics, "/metrics"), "counted")
        said = read(metrics, "/metrics")
    for expected in (
        "regatta_jobs_created_total 1.0",
        "regatta_first_pod_launch_delay_seconds_count 1.0",
        "regatta_all_pods_launch_delay_seconds_count 1.0",
        "regatta_reconcile_seconds_bucket",
        "regatta_queue_depth",
        'regatta_api_requests_total{code="201",resource="pods",verb="create"} 1.0',
    ):
        assert expected in said


def test_an_edit_that_was_made_while_no_operator_ran_is_followed(left: Jobs) -> None:
    job = a_job("job").workers(1).document()
    container = job["spec"]["worker"]["template"]["spec"]["containers"][0]
    with RunningOperator(left.plane.admin_kubeconfig, namespace=left.namespace):
        left.create(job)
        left.wait_for_phase("job", "Running")
    container["image"] = "train:2"
    left.change("job", runPolicy={"suspend": True})
    left.change("job", worker=job["spec"]["worker"])
    left.change("job", runPolicy={"suspend": False})
    with RunningOperator(left.plane.admin_kubeconfig, namespace=left.namespace):
        left.wait_for_pods(
            "job",
            lambda pods: (
                [p["spec"]["containers"][0]["image"] for p in pods.values()] == ["train:2"]
            ),
            "a pod of the edited template",
        )
        left.wait_for_phase("job", "Running")
