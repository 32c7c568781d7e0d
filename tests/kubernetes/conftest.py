"""What tests on a real Kubernetes share: a control plane per worker, a namespace per test.

Programs that are missing are built after collection, before any test's clock runs.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Callable, Iterator

import pytest

from tests.kubernetes.controlplane.access import Access
from tests.kubernetes.controlplane.build import CannotBuild, build
from tests.kubernetes.controlplane.cluster import alone, joined
from tests.kubernetes.controlplane.images import base_image
from tests.kubernetes.controlplane.machine import install_packages, why_no_real_node
from tests.kubernetes.controlplane.plane import (
    ControlPlane,
    PlaneOptions,
    wait_for_controllers,
)
from tests.kubernetes.installation import is_installed, rest

_numbers = itertools.count(1)

StartPlane = Callable[..., ControlPlane]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What a cluster takes is the machine's business: tests wait while it gets on (`patience`),
    and this is the end of that."""
    for item in items:
        if "kubernetes" in item.path.parts and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(1200))


def _is_real(item: pytest.Item) -> bool:
    return "real_cluster" in getattr(item, "fixturenames", ())


def pytest_collection_finish(session: pytest.Session) -> None:
    ours = [item for item in session.items if "kubernetes" in item.path.parts]
    if not ours or session.config.option.collectonly:
        return
    on_real_node = any(map(_is_real, ours)) and why_no_real_node() is None
    try:
        build()
        if on_real_node:
            install_packages()
            base_image()
    except CannotBuild as problem:
        raise pytest.UsageError(str(problem)) from problem


@pytest.fixture(scope="package")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A whole control plane with eight kwok nodes, shared by this worker's tests.

    Use a namespace of your own (fixture `namespace`), and leave its parts running: a test that
    stops or pauses one, or needs other options, asks `start_plane` for its own.
    """
    with ControlPlane(folder=tmp_path_factory.mktemp("plane")) as running:
        wait_for_controllers(running)
        running.nodes.create(8)
        yield running


@pytest.fixture
def namespace(plane: ControlPlane) -> Iterator[str]:
    """A fresh namespace on the shared plane; it is deleted afterwards, without waiting."""
    name = f"test-{os.getpid()}-{next(_numbers)}"
    plane.create_namespace(name)
    yield name
    with contextlib.suppress(Exception):
        plane.api.delete(f"/api/v1/namespaces/{name}")


@pytest.fixture
def start_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartPlane]:
    """Start planes of your own: `start_plane(native_gangs=True)`; stopped when the test ends."""
    with contextlib.ExitStack() as stack:

        def start(*, kwok_nodes: int = 0, **options: object) -> ControlPlane:
            folder = tmp_path_factory.mktemp("own-plane")
            running = ControlPlane(PlaneOptions(**options), folder)  # type: ignore[arg-type]
            stack.enter_context(running)
            if running.options.controller_manager:
                wait_for_controllers(running)
            if kwok_nodes:
                running.nodes.create(kwok_nodes)
            return running

        yield start


@pytest.fixture(scope="session")
def real_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Access]:
    """A control plane with one real node, shared by all workers of this run. Root on Debian only.

    `node.import_image(tag)` gives the node an image that `images.build_image` made.
    """
    reason = why_no_real_node()
    if reason is not None:
        pytest.skip(reason)
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    with joined(shared / "real-cluster") as access:
        yield access


@pytest.fixture
def real_turn(request: pytest.FixtureRequest, real_cluster: Access) -> Iterator[None]:
    """The real cluster to oneself, whichever worker runs the test: its node is small.

    No operator is at work in it, unless the test asks for the installed one (`installed_cluster`).
    """
    with alone(real_cluster):
        if "installed_cluster" not in request.fixturenames and is_installed(real_cluster):
            rest(real_cluster)
        yield


@pytest.fixture
def real_namespace(real_cluster: Access, real_turn: None) -> Iterator[str]:
    """A fresh namespace on the real cluster, with its default account; deleted afterwards."""
    name = f"test-{os.getpid()}-{next(_numbers)}"
    real_cluster.create_namespace(name)
    account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
    real_cluster.api.wait_for(account, lambda seen: seen is not None, what="its account")
    yield name
    with contextlib.suppress(Exception):
        real_cluster.api.delete(f"/api/v1/namespaces/{name}")
