"""Clients on a real API server, straight or through the fault proxy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kubernetes.controlplane.plane import ControlPlane
from tests.kubernetes.faults.proxy import FaultProxy


@pytest.fixture
def proxy(plane: ControlPlane, tmp_path: Path) -> Iterator[FaultProxy]:
    with FaultProxy(plane.admin_kubeconfig, tmp_path / "proxy") as running:
        yield running
