"""Installing, upgrading and removing, with the commands that the documentation gives."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from typing import Any

import yaml

from regatta.api.crd.definition import definition
from tests.deploy.conftest import CRD, OPERATOR, wait_until_served
from tests.deploy.jobs import a_job, jobs_path, on_the_host, role, task
from tests.kubernetes.controlplane.plane import ControlPlane

StartPlane = Callable[..., ControlPlane]
DEPLOYMENT = "/apis/apps/v1/namespaces/paddle-system/deployments/paddle-controller-manager"
FORMER_FINALIZER = "finalizers.paddlepaddle.org"


def installed_names(plane: ControlPlane) -> set[str]:
    """Everything of a cluster's own kinds that could be ours."""
    found = plane.kubectl(
        "get", "namespaces,crds,clusterroles,clusterrolebindings", "-o", "name"
    ).stdout.split()
    return {name for name in found if "paddle" in name}


def create_job_with_child(plane: ControlPlane, name: str) -> None:
    job = plane.api.create(jobs_path("default"), a_job(name))
    owner = {
        "apiVersion": job["apiVersion"],
        "kind": job["kind"],
        "name": name,
        "uid": job["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    child = {"metadata": {"name": f"{name}-child", "ownerReferences": [owner]}}
    plane.api.create("/api/v1/namespaces/default/configmaps", child)


def wait_for_the_end(plane: ControlPlane, child: str) -> None:
    plane.api.wait_for(
        f"/api/v1/namespaces/default/configmaps/{child}",
        lambda seen: seen is None,
        what="its end",
        deadline_seconds=120,
    )


def test_create_installs_and_delete_leaves_nothing(start_plane: StartPlane) -> None:
    plane = start_plane(scheduler=False, kwok=False)
    before = installed_names(plane)
    files = ("-f", str(CRD), "-f", str(OPERATOR))
    plane.kubectl("create", *files)
    wait_until_served(plane)
    # The collector learns of new kinds every 30 s; a first job shows that it knows this one.
    create_job_with_child(plane, "first")
    plane.api.delete(jobs_path("default", "first"))
    wait_for_the_end(plane, "first-child")
    create_job_with_child(plane, "second")

    plane.kubectl("delete", *files, "--timeout=120s")

    assert installed_names(plane) == before
    wait_for_the_end(plane, "second-child")


def test_apply_replaces_the_former_operators_program(start_plane: StartPlane) -> None:
    plane = start_plane(scheduler=False, kwok=False)
    former = [
        document
        for document in yaml.safe_load_all(OPERATOR.read_text())
        if document["kind"] in ("Namespace", "ServiceAccount", "Deployment")
    ]
    pod = former[-1]["spec"]["template"]
    pod["metadata"] = {"labels": {"control-plane": "controller-manager"}}
    pod["spec"]["containers"][0] = {
        "name": "manager",
        "image": "former/controller:v0.3.5",
        "command": ["/manager"],
        "args": ["--leader-elect", "--initImage=alpine:3.10"],
    }
    plane.kubectl("create", "-f", "-", input=yaml.safe_dump_all(former))

    plane.kubectl("apply", "-f", str(CRD), "-f", str(OPERATOR))

    container = plane.api.get(DEPLOYMENT)["spec"]["template"]["spec"]["containers"][0]
    assert container["command"] == ["regatta", "operator"]
    assert "--initImage=alpine:3.10" not in container["args"]
    assert container["image"].startswith("regatta/operator:")


def test_jobs_of_the_former_crd_stay_and_can_be_let_go(start_plane: StartPlane) -> None:
    plane = start_plane(scheduler=False, kwok=False)
    _install_former_crd(plane)
    job = a_job("wide.deep", cleanPodPolicy="Nerver", worker=role(2))
    job["metadata"]["finalizers"] = [FORMER_FINALIZER]
    plane.api.create(jobs_path("default"), job)

    plane.kubectl("apply", "-f", str(CRD))
    _wait_for_rules(plane)

    path = jobs_path("default", "wide.deep")
    plane.api.patch(f"{path}/status", {"status": {"phase": "Running", "mode": "Collective"}})
    plane.api.delete(path)
    plane.api.patch(path, {"metadata": {"finalizers": None}})
    plane.api.wait_for(path, lambda seen: seen is None, what="the job's end")


def test_a_job_that_was_on_the_host_network_before_the_rules_can_still_be_changed(
    start_plane: StartPlane,
) -> None:
    plane = start_plane(scheduler=False, kwok=False)
    _install_former_crd(plane)
    roles = {"ps": role(template=on_the_host()), "worker": role(2, template=on_the_host())}
    plane.api.create(jobs_path("default"), a_job("classic", **roles))
    tasks = [task("a", 2, template=on_the_host())]
    plane.api.create(jobs_path("default"), a_job("custom", tasks=tasks))

    plane.kubectl("apply", "-f", str(CRD))
    _wait_for_rules(plane)

    plane.api.patch(jobs_path("default", "classic"), {"spec": {"worker": {"replicas": 3}}})
    for name in ("classic", "custom"):
        path = jobs_path("default", name)
        plane.api.patch(f"{path}/status", {"status": {"phase": "Running"}})
        plane.api.patch(path, {"spec": {"runPolicy": {"abort": True}}})


def _install_former_crd(plane: ControlPlane) -> None:
    """One that takes anything, as the former operator's took almost anything."""
    permissive: dict[str, Any] = copy.deepcopy(definition())
    version = permissive["spec"]["versions"][0]
    del version["subresources"]["scale"]
    version["schema"]["openAPIV3Schema"] = {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
    }
    plane.kubectl("create", "-f", "-", input=yaml.safe_dump(permissive))
    wait_until_served(plane)


def _wait_for_rules(plane: ControlPlane) -> None:
    """Until a bad new job is refused: a changed CRD takes effect a moment after its write."""
    deadline = time.monotonic() + 60
    probe = a_job("probe", cleanPodPolicy="Nerver")
    path = f"{jobs_path('default')}?dryRun=All"
    while plane.api.raw("POST", path, probe)[0] != 422:
        assert time.monotonic() < deadline, "the new rules never took effect"
        time.sleep(0.1)
