"""One operator per test worker, on the worker's shared control plane."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kubernetes.controlplane.access import Access
from tests.kubernetes.controlplane.plane import ControlPlane, wait_for_controllers
from tests.kubernetes.operator.running import Jobs, RunningOperator
from tests.patience import Patience

CRD = Path(__file__).parents[3] / "deploy" / "v1" / "crd.yaml"
_numbers = itertools.count(1)
NAME = "paddlejobs.batch.paddlepaddle.org"


def install_crd(plane: Access) -> None:
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/" + NAME
    if plane.api.find(path) is None:
        plane.kubectl("create", "-f", str(CRD))
    plane.api.wait_for(path, _is_established, what="Established")
    patience = Patience(60)
    # Its storage answers 429 for a moment after the API server has said yes.
    while plane.api.raw("GET", "/apis/batch.paddlepaddle.org/v1/paddlejobs")[0] != 200:
        assert not patience.over, "PaddleJobs are not served"
        time.sleep(0.1)
    plane.wait_until_known("paddlejobs")


def _is_established(crd: Any) -> bool:
    conditions = (crd or {}).get("status", {}).get("conditions") or []
    return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)


@pytest.fixture(scope="package")
def cluster(plane: ControlPlane) -> ControlPlane:
    """The shared plane with our CRD."""
    install_crd(plane)
    return plane


@pytest.fixture(scope="package")
def operator(cluster: ControlPlane) -> Iterator[RunningOperator]:
    """The operator that looks after all namespaces of the shared plane."""
    with RunningOperator(cluster.admin_kubeconfig) as running:
        yield running


@pytest.fixture
def jobs(operator: RunningOperator, cluster: ControlPlane, namespace: str) -> Jobs:
    """A namespace of one's own, with the operator at work in it."""
    return Jobs(cluster, namespace)


@pytest.fixture(scope="package")
def deserted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A cluster with our CRD and no operator, for tests that bring their own."""
    with ControlPlane(folder=tmp_path_factory.mktemp("deserted")) as plane:
        install_crd(plane)
        wait_for_controllers(plane)
        plane.nodes.create(4)
        yield plane


@pytest.fixture
def left(deserted: ControlPlane) -> Iterator[Jobs]:
    """A namespace of one's own in it."""
    name = deserted.create_namespace(f"left-{next(_numbers)}")
    yield Jobs(deserted, name)
    deserted.api.delete(f"/api/v1/namespaces/{name}")
