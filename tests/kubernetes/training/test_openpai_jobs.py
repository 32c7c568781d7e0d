"""OpenPAI's own files on a real node: bash, the network between roles, and secrets are real."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.doors import Said
from tests.kubernetes.engine.conftest import ClusterRegatta
from tests.kubernetes.training.container_images import WIDE_AND_DEEP
from tests.kubernetes.training.jobs import TrainingJobs
from tests.openpai_configs import ODD_SAYS, hello, two_roles, version_two

pytestmark = pytest.mark.timeout(900)

PLANTED = 'planted "&\\1$$ `x`'


@pytest.fixture
def regatta(jobs: TrainingJobs, tmp_path: Path) -> ClusterRegatta:
    return ClusterRegatta(tmp_path, jobs.plane, jobs.namespace)


def run(regatta: ClusterRegatta, config: str, roles: int = 1) -> Said:
    # The image is on the node, and its tag says to ask a registry.
    pull = "template.spec.containers[0].imagePullPolicy=IfNotPresent"
    sets = [word for i in range(roles) for word in ("--set", f"spec.tasks[{i}].{pull}")]
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


def test_a_secret_reaches_the_program_and_no_object_but_its_own(
    regatta: ClusterRegatta, jobs: TrainingJobs
) -> None:
    commands = ["token='<% $secrets.token %>'", "echo it has ${#token} letters"]
    config = version_two("Hidden", commands, image=WIDE_AND_DEEP, secrets={"token": PLANTED})

    said = run(regatta, config)

    assert f"it has {len(PLANTED)} letters" in said.out, said
    for kind in ("paddlejobs", "pods", "configmaps", "events"):
        assert "planted" not in jobs.kubectl("get", kind, "-o", "yaml")
