"""Clusters that a team's server stands in front of, simulated and real, with the operator."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kubernetes.controlplane.access import Access
from tests.kubernetes.controlplane.images import base_image
from tests.kubernetes.controlplane.node import import_image
from tests.kubernetes.controlplane.plane import ControlPlane, wait_for_controllers
from tests.kubernetes.operator.conftest import install_crd
from tests.kubernetes.operator.running import RunningOperator
from tests.server.records.conftest import postgresql, pytest_collection_finish

__all__ = ["postgresql", "pytest_collection_finish"]


@pytest.fixture(scope="package")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Its nodes are large: OpenPAI's jobs ask for 4 CPUs, 8 GiB and a GPU each."""
    with ControlPlane(folder=tmp_path_factory.mktemp("team-plane")) as running:
        wait_for_controllers(running)
        running.nodes.create(2, cpu="64", gpus=8)
        install_crd(running)
        yield running


@pytest.fixture(scope="package")
def operator(plane: ControlPlane) -> Iterator[RunningOperator]:
    with RunningOperator(plane.admin_kubeconfig) as running:
        yield running


@pytest.fixture
def ready_cluster(real_cluster: Access, real_turn: None) -> Iterator[Access]:
    """The real one to oneself, with the operator at work in all its namespaces."""
    install_crd(real_cluster)
    with RunningOperator(real_cluster.admin_kubeconfig):
        yield real_cluster


@pytest.fixture(scope="package")
def node_image(real_cluster: Access) -> str:
    """On the real node: Debian with Python."""
    return import_image(base_image())
