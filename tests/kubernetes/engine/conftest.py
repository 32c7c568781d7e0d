"""The `regatta` command on a cluster of its own, with users who may do less than everything."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.doors import Regatta
from tests.kubernetes.controlplane.access import Access
from tests.kubernetes.controlplane.kubeconfig import User
from tests.kubernetes.controlplane.plane import (
    ControlPlane,
    PlaneOptions,
    wait_for_controllers,
)
from tests.kubernetes.operator.conftest import install_crd
from tests.kubernetes.operator.running import Jobs, RunningOperator

_numbers = count(1)


class ClusterRegatta(Regatta):
    """The command with a kubeconfig, and a namespace that its context names."""

    def __init__(self, folder: Path, access: Access, namespace: str, user: str = "admin") -> None:
        super().__init__(folder)
        self.kubeconfig = folder / f"{user}-{namespace}.kubeconfig"
        written = access.kubeconfig(user, namespace)
        self.kubeconfig.write_bytes(written.read_bytes())
        access.kubeconfig(user)  # others use the same file
        self.environment |= {"KUBECONFIG": str(self.kubeconfig), "REGATTA_ENGINE": "kubernetes"}


@pytest.fixture(scope="package")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane with the CRD, four nodes, and a user without any rights."""
    options = PlaneOptions(users=(User("alice", ("devs",)),))
    with ControlPlane(options, tmp_path_factory.mktemp("door-plane")) as running:
        wait_for_controllers(running)
        running.nodes.create(4, gpus=2)
        install_crd(running)
        yield running


@pytest.fixture(scope="package")
def operator(plane: ControlPlane) -> Iterator[RunningOperator]:
    with RunningOperator(plane.admin_kubeconfig) as running:
        yield running


@pytest.fixture
def jobs(operator: RunningOperator, plane: ControlPlane, namespace: str) -> Jobs:
    """A namespace with the operator at work in it."""
    return Jobs(plane, namespace)


@pytest.fixture
def regatta(jobs: Jobs, plane: ControlPlane, tmp_path: Path) -> ClusterRegatta:
    return ClusterRegatta(tmp_path, plane, jobs.namespace)


@pytest.fixture
def name() -> str:
    return f"job-{next(_numbers)}"
