"""An API server that knows PaddleJobs, for tests that need no node and no operator."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kubernetes.conftest import start_plane  # noqa: F401  a fixture
from tests.kubernetes.controlplane.build import CannotBuild, build
from tests.kubernetes.controlplane.plane import ControlPlane, PlaneOptions

ROOT = Path(__file__).parents[2]
CRD = ROOT / "deploy/v1/crd.yaml"
OPERATOR = ROOT / "deploy/v1/operator.yaml"
JOBS = "/apis/batch.paddlepaddle.org/v1/paddlejobs"
_numbers = itertools.count(1)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Builds what is missing before any test's clock runs."""
    if session.config.option.collectonly or not any(
        Path(__file__).parent in item.path.parents for item in session.items
    ):
        return
    try:
        build("etcd", "kubernetes", "kwok", "helm")
    except CannotBuild as problem:
        raise pytest.UsageError(str(problem)) from problem


@pytest.fixture(scope="package")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """API server and etcd alone, with the CRD applied as a person would apply it."""
    options = PlaneOptions(controller_manager=False, scheduler=False, kwok=False)
    with ControlPlane(options, tmp_path_factory.mktemp("plane")) as running:
        install_crd(running)
        yield running


@pytest.fixture
def namespace(plane: ControlPlane) -> str:
    """A namespace of the test's own."""
    return plane.create_namespace(f"deploy-{os.getpid()}-{next(_numbers)}")


def install_crd(plane: ControlPlane) -> None:
    plane.kubectl("apply", "-f", str(CRD))
    wait_until_served(plane)


def wait_until_served(plane: ControlPlane, deadline_seconds: float = 60) -> None:
    """Until the jobs' path answers: 404 at first, then 429 while its storage is set up."""
    deadline = time.monotonic() + deadline_seconds
    while (answer := plane.api.raw("GET", JOBS))[0] != 200:
        assert time.monotonic() < deadline, f"PaddleJobs are not served: {answer}"
        time.sleep(0.05)
    plane.wait_until_known("paddlejobs")
