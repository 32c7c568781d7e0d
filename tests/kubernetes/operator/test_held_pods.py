"""Pods that have their place and never start: the job says what they wait for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from regatta.controller.policies import setting_up
from tests.doors import eventually
from tests.kubernetes.controlplane.access import Access
from tests.kubernetes.controlplane.images import base_image
from tests.kubernetes.controlplane.node import import_image
from tests.kubernetes.operator.builders import JobBuilder, a_job
from tests.kubernetes.operator.conftest import install_crd
from tests.kubernetes.operator.running import Jobs, RunningOperator


@pytest.fixture(scope="module")
def image(real_cluster: Access) -> str:
    return import_image(base_image())


@pytest.fixture
def real_jobs(
    real_cluster: Access, real_namespace: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Jobs]:
    """On a node with a kubelet, and with an operator that is soon impatient."""
    monkeypatch.setattr(setting_up, "PATIENCE_SECONDS", 2.0)
    install_crd(real_cluster)  # type: ignore[arg-type]
    with RunningOperator(real_cluster.admin_kubeconfig, namespace=real_namespace):
        yield Jobs(real_cluster, real_namespace)  # type: ignore[arg-type]


def a_job_that_mounts(image: str, volume: dict[str, Any], **spec: Any) -> JobBuilder:
    document = a_job("job").workers(2).document()
    pod = document["spec"]["worker"]["template"]["spec"]
    pod["containers"][0] |= {
        "image": image,
        "imagePullPolicy": "Never",
        "command": ["sh", "-c", "cat /it/*"],
        "resources": {},
        "volumeMounts": [{"name": "it", "mountPath": "/it"}],
    }
    pod["volumes"] = [{"name": "it", **volume}]
    return JobBuilder(document).spec(**spec)


@pytest.mark.parametrize("intranet", ["PodIP", "Service"])
def test_a_config_map_that_does_not_exist_is_named_until_it_does(
    real_jobs: Jobs, image: str, intranet: str
) -> None:
    volume = {"configMap": {"name": "settings"}}
    real_jobs.create(a_job_that_mounts(image, volume, intranet=intranet))
    missing = (
        "job-worker-0 cannot start: ConfigMap settings (volume it) does not exist in namespace "
        f"{real_jobs.namespace}; create it"
    )
    status = real_jobs.wait("job", lambda s: s.get("message") == missing, "what is missing")
    assert status["phase"] == "Starting"
    real_jobs.api.create(
        f"{real_jobs.core}/configmaps", {"metadata": {"name": "settings"}, "data": {"a": "b"}}
    )
    assert not real_jobs.wait_for_phase("job", "Completed").get("restarts")


def test_a_secret_that_may_be_missing_is_named_with_what_to_look_at(
    real_jobs: Jobs, image: str
) -> None:
    """On the node's own network a pod has its address at once, and is no further for it."""
    volume = {"secret": {"secretName": "keys"}}
    job = a_job_that_mounts(image, volume, intranet="Host")
    document = job.document()
    document["spec"]["worker"]["replicas"] = 1
    real_jobs.create(document)
    doubt = (
        "node real has been setting up job-worker-0 for more than 2 s; its volumes need Secret "
        f"keys (volume it): is that there? `kubectl -n {real_jobs.namespace} describe pod "
        "job-worker-0` says what it waits for"
    )
    real_jobs.wait("job", lambda s: s.get("message") == doubt, "what may be missing")
    describe = ("-n", real_jobs.namespace, "describe", "pod", "job-worker-0")
    eventually(
        lambda: 'secret "keys" not found' in real_jobs.plane.kubectl(*describe).stdout,
        "the kubelet to say so",
    )
    keys = {"metadata": {"name": "keys"}, "stringData": {"a": "b"}}
    real_jobs.api.create(f"{real_jobs.core}/secrets", keys)
    real_jobs.wait_for_phase("job", "Completed")


def test_a_node_that_does_not_exist_is_named(jobs: Jobs, operator: RunningOperator) -> None:
    before = operator.metric("regatta_api_requests_total", resource="configmaps", verb="get")
    job = a_job("job").workers(2).pod("worker", nodeName="ghost")
    jobs.create(job)
    words = (
        "node ghost, which nodeName of role worker names, has not taken job-worker-0 for more than "
        "20 s: `kubectl get node ghost` says whether there is one of that name"
    )
    jobs.wait("job", lambda s: s.get("message") == words, "which node", seconds=120)
    asked = operator.metric("regatta_api_requests_total", resource="configmaps", verb="get")
    assert asked == before, "where nothing could be missing, nothing is looked for"
