"""What the operator may and may not do, asked of the API server itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from tests.deploy.conftest import CRD, OPERATOR, wait_until_served
from tests.deploy.jobs import a_job, jobs_path, role
from tests.kubernetes.controlplane.kwok import exits
from tests.kubernetes.controlplane.plane import ControlPlane
from tests.kubernetes.operator.running import RunningOperator

ACCOUNT = "system:serviceaccount:paddle-system:paddle-manager-sa"
LEASE = "b2a304f2.paddlepaddle.org"
PADDLE, VOLCANO, NATIVE = "batch.paddlepaddle.org", "scheduling.volcano.sh", "scheduling.k8s.io"

#: group, resource, verbs, in any namespace
MAY = [
    (PADDLE, "paddlejobs", "get list watch patch delete"),
    (PADDLE, "paddlejobs/status", "patch update"),
    (PADDLE, "paddlejobs/finalizers", "update"),
    ("", "pods", "create get list watch patch delete"),
    ("", "services", "create get list watch delete"),
    ("", "configmaps", "create get list watch delete"),
    ("discovery.k8s.io", "endpointslices", "list watch"),
    ("", "events", "create patch"),
    (VOLCANO, "podgroups", "create get list watch patch delete"),
    (NATIVE, "podgroups", "create get list watch delete"),
]
MAY_NOT = [
    (PADDLE, "paddlejobs", "create update deletecollection"),
    ("", "pods", "update deletecollection"),
    ("", "pods/exec", "create get"),
    ("", "pods/log", "get"),
    ("", "pods/attach", "create"),
    ("", "pods/ephemeralcontainers", "update patch"),
    ("", "pods/status", "patch update"),
    ("", "services", "update patch"),
    ("", "configmaps", "update patch"),
    ("", "secrets", "get list watch create"),
    ("", "serviceaccounts", "get list create"),
    ("", "serviceaccounts/token", "create"),
    ("", "nodes", "get list watch patch"),
    ("", "namespaces", "get list create delete"),
    ("", "persistentvolumeclaims", "get list create"),
    ("", "events", "list delete"),
    ("apps", "deployments", "get list create"),
    ("batch", "jobs", "get create"),
    ("rbac.authorization.k8s.io", "clusterroles", "get create bind escalate"),
    ("apiextensions.k8s.io", "customresourcedefinitions", "get create patch delete"),
    ("coordination.k8s.io", "leases", "create get update"),  # in other namespaces
    ("*", "*", "*"),
]

Question = dict[str, Any]


@pytest.fixture(scope="module")
def installed(plane: ControlPlane) -> Iterator[ControlPlane]:
    plane.kubectl("apply", "-f", str(OPERATOR))
    yield plane
    # Without a controller manager a namespace stays for ever; the rest goes.
    plane.kubectl("delete", "-f", str(OPERATOR), "--wait=false")


def allowed(plane: ControlPlane, question: Question) -> bool:
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": ACCOUNT,
            "groups": ["system:serviceaccounts", "system:serviceaccounts:paddle-system"],
            "resourceAttributes": question,
        },
    }
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    return bool(plane.api.create(path, review)["status"]["allowed"])


def ask(group: str, resource: str, verb: str, **more: str) -> Question:
    name, _, sub = resource.partition("/")
    question = {"group": group, "resource": name, "subresource": sub, "verb": verb}
    return {"namespace": "somewhere"} | question | more


@pytest.mark.parametrize(("group", "resource", "verbs"), MAY)
def test_the_operator_may(installed: ControlPlane, group: str, resource: str, verbs: str) -> None:
    refused = [v for v in verbs.split() if not allowed(installed, ask(group, resource, v))]
    assert refused == []


@pytest.mark.parametrize(("group", "resource", "verbs"), MAY_NOT)
def test_the_operator_may_not(
    installed: ControlPlane, group: str, resource: str, verbs: str
) -> None:
    granted = [v for v in verbs.split() if allowed(installed, ask(group, resource, v))]
    assert granted == []


def test_the_operator_has_one_lease_and_no_other(installed: ControlPlane) -> None:
    def lease(verb: str, **more: str) -> bool:
        here = {"namespace": "paddle-system"} | more
        return allowed(installed, ask("coordination.k8s.io", "leases", verb, **here))

    assert lease("create")
    assert all(lease(verb, name=LEASE) for verb in ("get", "update", "patch"))
    assert not any(lease(verb, name="another") for verb in ("get", "update", "patch", "delete"))


def test_every_right_in_the_manifest_is_in_the_table_above() -> None:
    rules = next(
        document["rules"]
        for document in yaml.safe_load_all(OPERATOR.read_text())
        if document["kind"] == "ClusterRole"
        and document["metadata"]["name"].endswith("manager-role")
    )
    granted = {
        (group, resource, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    told = {(group, resource, verb) for group, resource, verbs in MAY for verb in verbs.split()}
    assert granted == told


def test_the_operators_pod_passes_the_restricted_level(installed: ControlPlane) -> None:
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    installed.create_namespace("restricted", labels)
    deployment = installed.api.get(
        "/apis/apps/v1/namespaces/paddle-system/deployments/paddle-controller-manager"
    )
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "operator"},
        "spec": deployment["spec"]["template"]["spec"],
    }
    path = "/api/v1/namespaces/restricted/pods?dryRun=All"
    assert installed.api.raw("POST", path, pod)[0] == 201
    del pod["spec"]["securityContext"]["runAsNonRoot"]
    status, said = installed.api.raw("POST", path, pod)
    assert (status, "runAsNonRoot" in said) == (403, True), "the level is not enforced here"


def test_whoever_may_edit_or_view_a_namespace_may_do_so_with_its_jobs(
    start_plane: Callable[..., ControlPlane],
) -> None:
    plane = start_plane(scheduler=False, kwok=False)
    plane.kubectl("create", "-f", str(CRD), "-f", str(OPERATOR))
    wait_until_served(plane)
    expected = {
        "admin": {"create", "delete", "patch"},
        "edit": {"create", "delete", "patch"},
        "view": {"get", "list", "watch"},
    }
    for name, verbs in expected.items():

        def covers(seen: Any, verbs: set[str] = verbs) -> bool:
            rules = [rule for rule in seen["rules"] or () if PADDLE in rule["apiGroups"]]
            return any(
                verbs <= set(rule["verbs"]) and "paddlejobs" in rule["resources"] for rule in rules
            )

        plane.api.wait_for(
            f"/apis/rbac.authorization.k8s.io/v1/clusterroles/{name}", covers, what="paddlejobs"
        )
    view = plane.api.get("/apis/rbac.authorization.k8s.io/v1/clusterroles/view")
    ours = [rule for rule in view["rules"] if PADDLE in rule["apiGroups"]]
    assert {verb for rule in ours for verb in rule["verbs"]} == {"get", "list", "watch"}


def test_the_operator_finds_its_rights_sufficient(
    start_plane: Callable[..., ControlPlane],
) -> None:
    # As OpenShift has it: who owns a thing may be said only by those who may change the owner.
    enforced = "--enable-admission-plugins=OwnerReferencesPermissionEnforcement"
    plane = start_plane(kwok_nodes=2, apiserver_args=(enforced,))
    plane.kubectl("create", "-f", str(CRD), "-f", str(OPERATOR))
    wait_until_served(plane)
    kubeconfig = plane.service_account_kubeconfig("paddle-system", "paddle-manager-sa")
    template = {"metadata": {"annotations": exits(0, after="1s")}} | role()["template"]
    job = a_job(
        ps=role(2),
        worker=role(2, template=template),
        intranet="Service",
        runPolicy={"ttlSecondsAfterFinished": 0},
    )
    job["metadata"]["finalizers"] = ["finalizers.paddlepaddle.org"]
    settings = {"leader_elect": True, "lease_namespace": "paddle-system"}
    with RunningOperator(kubeconfig, **settings) as operator:
        plane.api.create(jobs_path("default"), job)
        path = jobs_path("default", "demo")
        # It ran, completed, was cleaned, and outlived its time: creates, patches and deletes of all
        # kinds, the Lease and the former operator's finalizer among them.
        plane.api.wait_for(
            path, lambda seen: seen is None, what="the job's end", deadline_seconds=120
        )
        assert operator.metric("regatta_jobs_completed_total") == 1
        assert operator.metric("regatta_api_requests_total", code="403") == 0
        for verb, resource in (("create", "services"), ("create", "events"), ("create", "leases")):
            assert operator.metric("regatta_api_requests_total", verb=verb, resource=resource) > 0
