"""What the cluster refuses, and jobs that cannot be run at all."""

from __future__ import annotations

import time

import pytest

from tests.kubernetes.controlplane.api import Refused
from tests.kubernetes.operator.builders import a_job
from tests.kubernetes.operator.running import Jobs, RunningOperator
from tests.patience import Patience


def quota(jobs: Jobs, pods: int) -> str:
    path = f"{jobs.core}/resourcequotas"
    jobs.api.create(path, {"metadata": {"name": "few"}, "spec": {"hard": {"pods": str(pods)}}})
    jobs.api.wait_for(
        f"{path}/few", lambda q: q.get("status", {}).get("used"), what="the quota in force"
    )
    return f"{path}/few"


def test_a_quota_that_refuses_pods_is_told_and_tried_again(jobs: Jobs) -> None:
    """K24: the refusal was only logged, and nobody ever tried again."""
    path = quota(jobs, 2)
    jobs.create(a_job("job").workers(4))
    status = jobs.wait("job", lambda s: s.get("reason") == "CreateRefused", "the refusal")
    assert "quota" in status["message"]
    assert status["phase"] == "Pending"
    kept = {pod["metadata"]["uid"] for pod in jobs.pods("job").values()}
    assert kept, "what was created stays"
    jobs.api.patch(path, {"spec": {"hard": {"pods": "10"}}})
    status = jobs.wait_for_phase("job", "Running")
    assert kept <= {pod["metadata"]["uid"] for pod in jobs.pods("job").values()}
    jobs.wait("job", lambda s: not s.get("reason"), "no complaint")
    refusals = [e for e in jobs.events("job") if e["reason"] == "CreateRefused"]
    assert len(refusals) == 1, "one event for each thing said"


def test_where_room_is_short_servers_come_before_workers(
    left: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """K12: roles came in a random order."""
    monkeypatch.setattr("regatta.engines.kubernetes.operator.create.IN_FLIGHT", 1)
    quota(left, 3)
    with RunningOperator(left.plane.admin_kubeconfig, namespace=left.namespace):
        left.create(a_job("wide").with_ps(3).workers(3))
        left.wait("wide", lambda s: s.get("reason") == "CreateRefused", "the refusal")
        assert list(left.pods("wide")) == ["wide-ps-0", "wide-ps-1", "wide-ps-2"]


def test_a_misspelt_field_of_a_template_is_told_with_its_place(jobs: Jobs) -> None:
    job = a_job("job").workers(1).document()
    job["spec"]["worker"]["template"]["spec"]["containers"][0]["imagePullPolice"] = "Always"
    jobs.create(job)
    status = jobs.wait("job", lambda s: s.get("reason") == "CreateRefused", "the refusal")
    assert "imagePullPolice" in status["message"]
    assert not jobs.pods("job")


def test_what_is_refused_is_told_in_a_sentence_and_not_quoted(jobs: Jobs) -> None:
    job = a_job("job").workers(1).document()
    container = job["spec"]["worker"]["template"]["spec"]["containers"][0]
    container["securityContext"] = {"privileged": True, "allowPrivilegeEscalation": False}
    jobs.create(job)
    status = jobs.wait("job", lambda s: s.get("reason") == "CreateRefused", "the refusal")
    assert status["message"] == (
        "Pod job-worker-0 cannot be created: spec.containers[0].securityContext: "
        "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
    )


@pytest.mark.parametrize(
    ("what", "change"),
    [
        ("no template", {"worker": {"replicas": 1}}),
        ("no containers", {"worker": {"replicas": 1, "template": {"spec": {"containers": []}}}}),
        ("no replicas", {"worker": {"replicas": 0, "template": {}}}),
        ("nothing at all", {}),
        ("a name for a clean policy", {"cleanPodPolicy": "Nerver"}),
    ],
)
def test_a_job_that_cannot_be_run_is_refused_at_once(jobs: Jobs, what: str, change: dict) -> None:
    """K10, K11: such a job crashed the operator for everybody, or hung, or was Running."""
    job = a_job("job").document()
    job["spec"] = change
    with pytest.raises(Refused) as refused:
        jobs.create(job)
    assert refused.value.status == 422


def test_a_job_from_before_the_rules_is_told_and_harms_nobody(
    jobs: Jobs, operator: RunningOperator
) -> None:
    """K10: a bad spec crashed the controller for everybody. Its name starts with a digit here,
    which only our own rules refuse."""
    crd = (
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/paddlejobs.batch.paddlepaddle.org"
    )
    schema = jobs.api.get(crd)["spec"]["versions"][0]["schema"]
    loose = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    swap = [{"op": "replace", "path": "/spec/versions/0/schema", "value": loose}]
    jobs.api.patch(crd, swap, kind="json")
    try:
        bad = a_job("bad").document()
        bad["spec"] = {"worker": {"replicas": 1}, "cleanPodPolicy": "Nerver"}
        _until_accepted(jobs, bad)
        status = jobs.wait("bad", lambda s: s.get("reason") == "InvalidSpec", "what is wrong")
        assert status["phase"] == "Failed"
        assert "cleanPodPolicy" in status["message"]
        assert "template" in status["message"]
        jobs.wait_for_event("bad", "InvalidSpec")
        jobs.change("bad", cleanPodPolicy="Never", withGloo=9)
        status = jobs.wait("bad", lambda s: "withGloo" in s.get("message", ""), "the other mistake")
        assert "cleanPodPolicy" not in status["message"]
        assert (status["phase"], status["observedGeneration"]) == ("Failed", 2)
        jobs.create(a_job("good").workers(1).that_succeeds())
        jobs.wait_for_phase("good", "Completed")
        _goes_on_when_edited_into_something_wrong(jobs)
        fixed = a_job("bad").workers(1).that_succeeds().document()["spec"]
        jobs.change("bad", **fixed, cleanPodPolicy="Never", withGloo=1)
        jobs.wait_for_phase("bad", "Completed")
    finally:
        swap[0]["value"] = schema
        jobs.api.patch(crd, swap, kind="json")
        _until_refused(jobs, a_job("1abc").workers(1).document())
    assert operator.failure is None


def _goes_on_when_edited_into_something_wrong(jobs: Jobs) -> None:
    jobs.create(a_job("live").workers(1))
    jobs.wait_for_phase("live", "Running")
    for wrong in ("Nerver", "Somtimes"):
        jobs.change("live", cleanPodPolicy=wrong)
        status = jobs.wait("live", lambda s, w=wrong: w in s.get("message", ""), "what is wrong")
        assert (status["phase"], status["reason"]) == ("Running", "InvalidSpec")
        assert "Failed" not in {condition["type"] for condition in status["conditions"]}
        generation = jobs.get("live")["metadata"]["generation"]
        assert status["observedGeneration"] == generation
    jobs.ends("live-worker-0")
    jobs.wait_for_phase("live", "Completed")


def _until_refused(jobs: Jobs, document: dict) -> None:
    patience = Patience(60)
    while jobs.api.raw("POST", f"{jobs.path}?dryRun=All", document)[0] != 422:
        assert not patience.over, "the strict schema never came back into force"
        time.sleep(0.05)


def _until_accepted(jobs: Jobs, document: dict) -> None:
    patience = Patience(60)
    while True:
        try:
            jobs.create(document)
        except Refused:  # the API server has yet to take the other schema
            assert not patience.over, "the loose schema never came into force"
            time.sleep(0.05)
        else:
            return


def test_a_name_that_no_pod_could_have_is_refused_at_once(jobs: Jobs) -> None:
    """K16: the Service of a long name could never be created."""
    for name in ("1abc", "a" * 60, "two.parts"):
        with pytest.raises(Refused):
            jobs.create(a_job(name).workers(1))


def test_a_host_job_in_a_baseline_namespace_says_why_it_is_refused(jobs: Jobs) -> None:
    label = {"pod-security.kubernetes.io/enforce": "baseline"}
    jobs.api.patch(f"/api/v1/namespaces/{jobs.namespace}", {"metadata": {"labels": label}})
    jobs.create(a_job("job").workers(1).spec(intranet="Host"))
    status = jobs.wait("job", lambda s: s.get("reason") == "CreateRefused", "the refusal")
    assert "PodSecurity" in status["message"]


def test_a_job_that_does_not_fit_says_what_it_waits_for(jobs: Jobs) -> None:
    job = a_job("job").workers(1).document()
    container = job["spec"]["worker"]["template"]["spec"]["containers"][0]
    container["resources"] = {"requests": {"cpu": "1000"}}
    jobs.create(job)
    status = jobs.wait("job", lambda s: "Insufficient cpu" in s.get("message", ""), "why")
    assert status["phase"] == "Pending"


def test_an_image_that_cannot_be_pulled_is_named(jobs: Jobs) -> None:
    waits = {"kwok.regatta.test/waiting": "ImagePullBackOff"}
    jobs.create(a_job("job").workers(1, **waits))
    status = jobs.wait("job", lambda s: "ImagePullBackOff" in s.get("message", ""), "why")
    assert status["phase"] == "Starting"
