"""Every file of the tutorial, as it stands: `kubectl apply`, `kubectl get pdj`, and its end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.kubernetes.controlplane.plane import ControlPlane, wait_for_controllers
from tests.kubernetes.controlplane.volcano import Volcano
from tests.kubernetes.operator.conftest import install_crd
from tests.kubernetes.operator.running import Jobs, RunningOperator

EXAMPLES = Path(__file__).parents[3] / "deploy/examples"
#: What `get` shows of each while it runs, and once it has completed.
SHOWN = {
    "wide_and_deep": ("PS 2/2 2/2", "PS 2/2 0/2"),
    "wide_and_deep_podip": ("PS 2/2 2/2", "PS 2/2 0/2"),
    "wide_and_deep_service": ("PS 2/2 2/2", "PS 2/2 0/2"),
    "wide_and_deep_volcano": ("PS 2/2 2/2", "PS 2/2 0/2"),
    "resnet": ("Collective 2/2", "Collective 0/2"),
    "gpu": ("Collective 2/2", "Collective 0/2"),
    "data": ("Collective 2/2", "Collective 0/2"),
    "elastic": ("Collective 3/3", "Collective 0/3"),
}


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jobs]:
    with ControlPlane(folder=tmp_path_factory.mktemp("tutorial")) as plane:
        wait_for_controllers(plane)
        install_crd(plane)
        plane.nodes.create(2)
        plane.nodes.create(2, prefix="gpu", gpus=1, labels={"accelerator": "nvidia-tesla-v100"})
        with Volcano(plane), RunningOperator(plane.admin_kubeconfig):
            yield Jobs(plane, "default")


def test_no_file_is_forgotten() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.yaml")} == set(SHOWN)


@pytest.mark.parametrize("example", SHOWN)
def test_an_example_does_as_the_tutorial_says(jobs: Jobs, example: str) -> None:
    path = EXAMPLES / f"{example}.yaml"
    name = next(
        document["metadata"]["name"]
        for document in yaml.safe_load_all(path.read_text())
        if document["kind"] == "PaddleJob"
    )
    jobs.plane.kubectl("apply", "-f", str(path))
    jobs.wait_for_phase(name, "Running")

    def shown() -> str:
        return " ".join(jobs.plane.kubectl("get", "pdj", name, "--no-headers").stdout.split()[:-1])

    running, completed = SHOWN[example]
    assert shown() == f"{name} Running {running}"
    for pod in jobs.pods(name):
        if "-worker-" in pod:
            jobs.ends(pod)
    jobs.plane.kubectl("wait", "--for=condition=Completed", "--timeout=60s", f"pdj/{name}")
    assert shown() == f"{name} Completed {completed}"
    jobs.plane.kubectl("delete", "-f", str(path), "--wait=false")
