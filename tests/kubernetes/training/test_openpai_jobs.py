"""OpenPAI's own files on a real node: bash and the network between roles are real."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.doors import Said
from tests.kubernetes.engine.conftest import ClusterRegatta
from tests.kubernetes.training.container_images import WIDE_AND_DEEP
from tests.kubernetes.training.jobs import TrainingJobs
from tests.openpai_configs import ODD_SAYS, hello, two_roles

pytestmark = pytest.mark.timeout(900)


@pytest.fixture
def regatta(jobs: TrainingJobs, tmp_path: Path) -> ClusterRegatta:
    return ClusterRegatta(tmp_path, jobs.plane, jobs.namespace)


def run(regatta: ClusterRegatta, config: str, roles: int = 1) -> Said:
    changes = (
        "imagePullPolicy=IfNotPresent",  # it is there, and its tag says to ask a registry
        "resources.requests.cpu=50m",  # OpenPAI's least is one, and the node is small
    )
    sets = [
        word
        for i in range(roles)
        for change in changes
        for word in ("--set", f"spec.tasks[{i}].template.spec.containers[0].{change}")
    ]
    return regatta("run", regatta.write(config, "config.json"), *sets)


def test_hello_world_runs_and_bash_gets_what_was_written(regatta: ClusterRegatta) -> None:
    said = run(regatta, hello("Hello_World", image=WIDE_AND_DEEP))

    assert said.code == 0, said
    for line in ODD_SAYS[1:]:
        assert f"default-0 | {line}" in said.out
    assert "~Hello_World by " in said.out


def test_two_roles_find_each_other(regatta: ClusterRegatta) -> None:
    said = run(regatta, two_roles("Two_Roles", image=WIDE_AND_DEEP), roles=2)

    assert said.code == 0, said
    for line in ("found 0", "found 1", "ps_server has 2", "Worker has 2"):
        assert said.out.count(f"| {line}\n") == 2, said
