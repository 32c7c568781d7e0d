"""The operator as users have it: installed and removed with the documentation's commands."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from tests.kubernetes.controlplane.access import Access
from tests.patience import Patience

ROOT = Path(__file__).parents[2]
CRD = ROOT / "deploy/v1/crd.yaml"
OPERATOR = ROOT / "deploy/v1/operator.yaml"
FILES = ("-f", str(CRD), "-f", str(OPERATOR))
NAMESPACE = "paddle-system"
DEPLOYMENT = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/paddle-controller-manager"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
ALL_JOBS = "/apis/batch.paddlepaddle.org/v1/paddlejobs"


def is_installed(cluster: Access) -> bool:
    return cluster.api.find(DEPLOYMENT) is not None


def install(cluster: Access) -> None:
    """As docs/kubernetes/install.md says; returns when the operator is ready."""
    # A test that brought its own operator may have left the definition, which `create` refuses.
    cluster.kubectl("delete", "-f", str(CRD), "--ignore-not-found", "--timeout=60s")
    cluster.kubectl("create", *FILES)
    _wait_until_available(cluster)
    patience = Patience(60)
    # The API server answers 404 and then 429 for a moment after it has said yes.
    while (answer := cluster.api.raw("GET", ALL_JOBS))[0] != 200:
        assert not patience.over, f"PaddleJobs are not served: {answer}"
        time.sleep(0.1)
    cluster.wait_until_known("paddlejobs")


def uninstall(cluster: Access) -> None:
    """As docs/kubernetes/install.md says; kubectl returns when what it deleted is gone."""
    cluster.kubectl("delete", *FILES, "--timeout=180s")


def rest(cluster: Access) -> None:
    """Let the installed operator be, without a pod: quicker than to uninstall it."""
    _scale(cluster, 0)
    cluster.api.wait_for(PODS, lambda seen: not seen["items"], what="the end of its pod")


def work(cluster: Access) -> None:
    """Let it work again."""
    _scale(cluster, 1)
    _wait_until_available(cluster)


def operator_log(cluster: Access) -> str:
    """What the operator said, and what its pod says where it never came to speak."""
    inside = ("-n", NAMESPACE)
    said = cluster.kubectl(*inside, "logs", "deployment/paddle-controller-manager", check=False)
    pods = cluster.kubectl(*inside, "describe", "pods", check=False)
    return f"{said.stdout[-6000:]}{said.stderr}\n{pods.stdout[-3000:]}"


def _scale(cluster: Access, replicas: int) -> None:
    cluster.api.patch(f"{DEPLOYMENT}/scale", {"spec": {"replicas": replicas}})


def _wait_until_available(cluster: Access) -> None:
    try:
        cluster.api.wait_for(DEPLOYMENT, _is_available, what="its pod", deadline_seconds=120)
    except TimeoutError as problem:
        raise TimeoutError(f"{problem}\n{operator_log(cluster)}") from None


def _is_available(deployment: Any) -> bool:
    return bool((deployment or {}).get("status", {}).get("availableReplicas"))
