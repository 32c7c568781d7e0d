"""What of a job may change once it is there, and what the API server refuses to change."""

from __future__ import annotations

from typing import Any

import pytest

from regatta.api.job import Completion
from regatta.api.stored import read_spec
from tests.deploy.jobs import (
    Document,
    a_job,
    jobs_path,
    on_the_host,
    role,
    task,
    with_policy,
)
from tests.kubernetes.controlplane.api import Refused
from tests.kubernetes.controlplane.plane import ControlPlane

#: What a user changes on a job that exists → the patch, and the field that is refused.
CHANGES: dict[str, tuple[dict[str, Any], str]] = {
    "another image": (
        {"worker": {"template": {"spec": {"containers": [{"name": "main", "image": "y"}]}}}},
        "spec.worker",
    ),
    "a field of a later Kubernetes": (
        {"worker": {"template": {"spec": {"someNewField": 1}}}},
        "spec.worker",
    ),
    "another network": ({"intranet": "Service"}, "spec.intranet"),
    "no gloo": ({"withGloo": 0}, "spec.withGloo"),
    "another clean policy": ({"cleanPodPolicy": "Always"}, "spec.cleanPodPolicy"),
    "elastic from now on": ({"elastic": 1}, "spec.elastic"),
    "one more role": ({"heter": role()}, "spec.heter"),
    "one role less": ({"ps": None}, "spec.ps"),
    "a mode": ({"mode": "PS"}, "spec.mode"),
}


@pytest.mark.parametrize("case", CHANGES)
def test_a_job_that_runs_refuses(plane: ControlPlane, namespace: str, case: str) -> None:
    patch, field = CHANGES[case]
    plane.api.create(jobs_path(namespace), a_job(ps=role(), worker=role(2)))
    with pytest.raises(Refused) as caught:
        plane.api.patch(jobs_path(namespace, "demo"), {"spec": patch})
    assert f"{field}: " in caught.value.body
    assert "Suspend the job first" in caught.value.body


@pytest.mark.parametrize("case", CHANGES)
def test_a_suspended_job_takes(plane: ControlPlane, namespace: str, case: str) -> None:
    patch, _ = CHANGES[case]
    plane.api.create(
        jobs_path(namespace), a_job(ps=role(), worker=role(2), runPolicy={"suspend": True})
    )
    plane.api.patch(jobs_path(namespace, "demo"), {"spec": patch})


@pytest.mark.parametrize(
    "patch",
    [
        {"worker": {"replicas": 5}, "ps": {"replicas": 3}},
        {"worker": {"requests": 1, "limits": 8}},
        {"runPolicy": {"suspend": True, "backoffLimit": 4}},
        {"schedulingPolicy": {"queue": "fast"}},
    ],
    ids=["replicas", "bounds of replicas", "runPolicy", "schedulingPolicy"],
)
def test_a_job_that_runs_takes_a_new(
    plane: ControlPlane, namespace: str, patch: dict[str, Any]
) -> None:
    plane.api.create(jobs_path(namespace), a_job(ps=role(), worker=role(2)))
    plane.api.patch(jobs_path(namespace, "demo"), {"spec": patch})


def test_tasks_may_be_scaled_but_not_rewritten(plane: ControlPlane, namespace: str) -> None:
    plane.api.create(jobs_path(namespace), a_job(tasks=[task("a"), task("b")]))
    path = jobs_path(namespace, "demo")
    plane.api.patch(path, {"spec": {"tasks": [task("a", 3), task("b")]}})
    with pytest.raises(Refused, match=r"spec.tasks: .*only replicas.* may change"):
        plane.api.patch(path, {"spec": {"tasks": [task("a", 3), task("c")]}})
    with pytest.raises(Refused, match=r"spec.tasks: .*only replicas.* may change"):
        plane.api.patch(path, {"spec": {"tasks": [task("a", template=with_policy("Never"))]}})


#: Of a task that has a port: what its pods and the list of all addresses were made with.
OTHER_PORTS: dict[str, list[Document]] = {
    "another label": [{"label": "ssh"}],
    "more of them": [{"label": "http", "count": 2}],
    "one more label": [{"label": "http"}, {"label": "ssh"}],
    "none any more": [],
}


@pytest.mark.parametrize("ports", OTHER_PORTS.values(), ids=OTHER_PORTS)
def test_a_tasks_ports_stay_until_the_job_is_suspended(
    plane: ControlPlane, namespace: str, ports: list[Document]
) -> None:
    plane.api.create(jobs_path(namespace), a_job(tasks=[task("a", ports=[{"label": "http"}])]))
    path = jobs_path(namespace, "demo")
    rewritten = {"spec": {"tasks": [task("a", ports=ports)]}}
    with pytest.raises(Refused, match=r"spec.tasks: .*the pods that run would not follow"):
        plane.api.patch(path, rewritten)
    plane.api.patch(path, {"spec": {"runPolicy": {"suspend": True}}})
    plane.api.patch(path, rewritten)


def test_that_no_failure_fails_a_job_can_be_said_and_stays_said(
    plane: ControlPlane, namespace: str
) -> None:
    """By null, of which an API server forgets what no schema allows."""
    never = task("a", 3, completion={"minFailed": None, "minSucceeded": 2})
    plane.api.create(jobs_path(namespace), a_job(tasks=[never]))

    stored = plane.api.get(jobs_path(namespace, "demo"))

    assert stored["spec"]["tasks"][0]["completion"] == {"minFailed": None, "minSucceeded": 2}
    assert read_spec(stored["spec"]).tasks[0].completion == Completion(
        min_failed=None, min_succeeded=2
    )


def test_a_tasks_completion_may_change_because_it_is_read_in_every_pass(
    plane: ControlPlane, namespace: str
) -> None:
    plane.api.create(jobs_path(namespace), a_job(tasks=[task("a", 3)]))
    path = jobs_path(namespace, "demo")
    plane.api.patch(path, {"spec": {"tasks": [task("a", 3, completion={"minSucceeded": 2})]}})


@pytest.mark.parametrize("policy", [{"abort": False}, None], ids=["false", "no run policy"])
def test_an_aborted_job_cannot_be_taken_back(
    plane: ControlPlane, namespace: str, policy: Document | None
) -> None:
    plane.api.create(jobs_path(namespace), a_job(runPolicy={"suspend": True}))
    path = jobs_path(namespace, "demo")
    plane.api.patch(path, {"spec": {"runPolicy": {"abort": True}}})
    with pytest.raises(Refused, match=r"spec.runPolicy.abort: .*cannot be taken back"):
        plane.api.patch(path, {"spec": {"runPolicy": policy}})
    plane.api.patch(path, {"spec": {"runPolicy": {"ttlSecondsAfterFinished": 60}}})


def test_one_replica_on_the_host_network_gets_no_second(
    plane: ControlPlane, namespace: str
) -> None:
    plane.api.create(jobs_path(namespace), a_job(worker=role(1, template=on_the_host())))
    with pytest.raises(Refused, match=r"hostNetwork: .*write intranet: Host"):
        plane.api.patch(jobs_path(namespace, "demo"), {"spec": {"worker": {"replicas": 2}}})
