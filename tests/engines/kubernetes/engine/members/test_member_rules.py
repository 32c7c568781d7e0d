"""What a team's member may not ask of a cluster is told at submit, by field."""

from __future__ import annotations

from typing import Any

import pytest

from regatta.api.errors import InvalidJob
from regatta.engines.base import Submission
from regatta.engines.kubernetes.engine.members.member_rules import refuse_for_members
from regatta.engines.kubernetes.engine.submit import read
from tests.api.builders import a_job, a_pod_group
from tests.engines.kubernetes.engine.members.hostile_pods import (
    BEYOND_BASELINE,
    WITHIN_BASELINE,
    a_hostile_job,
)

TEMPLATE = "spec.worker.template.spec"
ANN = "user-ann"


def refused(job: a_job, *beside: dict[str, Any], **more: Any) -> dict[str, str]:
    """Message by place."""
    submission = Submission(text=job.text(*beside), namespace=ANN, **more)
    return {problem.path: problem.message for problem in refuse_for_members(read(submission, ANN))}


@pytest.mark.parametrize("wish", BEYOND_BASELINE)
def test_what_pod_security_would_refuse_is_refused_by_its_field(wish: str) -> None:
    pod, container, place = BEYOND_BASELINE[wish]
    found = refused(a_hostile_job(pod, container))
    assert f"{TEMPLATE}.{place}" in found
    assert "Pod Security baseline" in found[f"{TEMPLATE}.{place}"]


def test_an_open_proc_is_refused_also_where_a_newer_release_would_take_it() -> None:
    """With a user name space of its own a pod may have it there; on others it would wait."""
    job = a_hostile_job({"hostUsers": False}, {"securityContext": {"procMount": "Unmasked"}})
    assert list(refused(job)) == [f"{TEMPLATE}.containers[0].securityContext.procMount"]


@pytest.mark.parametrize("wish", WITHIN_BASELINE)
def test_what_it_allows_is_allowed(wish: str) -> None:
    assert refused(a_hostile_job(*WITHIN_BASELINE[wish])) == {}


@pytest.mark.parametrize(
    ("pod", "place"),
    [
        ({"automountServiceAccountToken": True}, "automountServiceAccountToken"),
        ({"serviceAccountName": "builder"}, "serviceAccountName"),
        ({"serviceAccount": "builder"}, "serviceAccount"),
        (
            {
                "volumes": [
                    {
                        "name": "v",
                        "projected": {
                            "sources": [
                                {"configMap": {"name": "mine"}},
                                {"serviceAccountToken": {"path": "token"}},
                            ]
                        },
                    }
                ]
            },
            "volumes[0].projected.sources[1].serviceAccountToken",
        ),
    ],
)
def test_nobody_asks_for_an_identity_in_the_cluster(pod: dict[str, Any], place: str) -> None:
    assert list(refused(a_hostile_job(pod, {}))) == [f"{TEMPLATE}.{place}"]


def test_to_say_that_there_is_none_is_no_mistake() -> None:
    quiet = {"automountServiceAccountToken": False, "serviceAccountName": "default"}
    assert refused(a_hostile_job(quiet, {})) == {}


def test_the_network_of_a_node_is_no_intranet_of_theirs() -> None:
    job = a_hostile_job({}, {}, workers=2).spec(intranet="Host")
    assert list(refused(job)) == ["spec.intranet"]


def test_every_role_is_looked_at() -> None:
    job = a_hostile_job({}, {}).with_ps(1, image="x")
    job.document["spec"]["ps"]["template"]["spec"]["hostPID"] = True
    assert list(refused(job)) == ["spec.ps.template.spec.hostPID"]
    template = {"spec": {"hostPID": True, "containers": [{"name": "c", "image": "x"}]}}
    tasks = a_job().with_tasks({"name": "a", "replicas": 1, "template": template})
    assert list(refused(tasks)) == ["spec.tasks[0].template.spec.hostPID"]


def test_a_volume_of_the_whole_cluster_is_its_administrators() -> None:
    volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "disk"}}
    found = refused(a_hostile_job({}, {}), volume)
    assert list(found) == ['PersistentVolume "disk"']
    assert "administrator" in found['PersistentVolume "disk"']


def a_claim(**metadata: str) -> dict[str, Any]:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    metadata = {"name": "data", **metadata}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


def test_what_stands_beside_a_job_is_in_its_namespace() -> None:
    assert refused(a_hostile_job({}, {}), a_claim(), a_pod_group(1)) == {}
    assert list(refused(a_hostile_job({}, {}), a_claim(namespace="user-bob"))) == [
        'PersistentVolumeClaim "data": metadata.namespace'
    ]


def test_a_kind_leads_to_no_other_path_of_the_api() -> None:
    """The version becomes a part of it."""
    astray = a_claim() | {"apiVersion": "apps/v1/namespaces/kube-system/deployments/x?"}
    assert list(refused(a_hostile_job({}, {}), astray)) == [
        'PersistentVolumeClaim "data": apiVersion'
    ]


def test_all_is_told_at_once_and_with_its_lines() -> None:
    job = a_hostile_job({"hostPID": True, "serviceAccountName": "x"}, {})
    submission = Submission(text=job.text(), namespace=ANN)
    with pytest.raises(InvalidJob) as invalid:
        read(submission, ANN, members_only=True)
    problems = [problem for problem in invalid.value.problems if problem.severity == "error"]
    assert len(problems) == 2
    assert all(problem.line for problem in problems)


def test_who_has_rights_of_their_own_may_ask_for_all_of_it() -> None:
    job = a_hostile_job({"hostPID": True}, {})
    assert read(Submission(text=job.text()), "default").job.name == "demo"
