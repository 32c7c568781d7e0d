"""A node to oneself, the operator on it, and a namespace to run jobs in.

Images are built after collection, before any test's clock runs: Paddle alone takes a minute.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kubernetes.controlplane.access import Access
from tests.kubernetes.controlplane.images import CannotBuildImage
from tests.kubernetes.controlplane.machine import install_packages, why_no_real_node
from tests.kubernetes.installation import install, is_installed, work
from tests.kubernetes.training.container_images import build_images, give_images_to_the_node
from tests.kubernetes.training.jobs import TrainingJobs


def pytest_collection_finish(session: pytest.Session) -> None:
    ours = any(Path(__file__).parent in item.path.parents for item in session.items)
    if not ours or session.config.option.collectonly or why_no_real_node() is not None:
        return
    try:
        install_packages()
        build_images()
    except CannotBuildImage as problem:
        raise pytest.UsageError(str(problem)) from problem


@pytest.fixture
def installed_cluster(real_cluster: Access, real_turn: None) -> Access:
    """The real cluster with the operator installed; this test's alone while it runs.

    The operator stays for the next test, whichever worker runs it.
    """
    imported = real_cluster.folder / "training-images"  # goes with the cluster, as the images do
    if not imported.exists():
        give_images_to_the_node()
        imported.touch()
    if is_installed(real_cluster):
        work(real_cluster)
    else:
        install(real_cluster)
    return real_cluster


@pytest.fixture
def jobs(installed_cluster: Access, real_namespace: str) -> TrainingJobs:
    """A namespace of one's own."""
    return TrainingJobs(installed_cluster, real_namespace)
