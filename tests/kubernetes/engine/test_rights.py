"""The roles that come with the operator are enough for the people who use its jobs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.doors import eventually
from tests.kubernetes.controlplane.plane import ControlPlane
from tests.kubernetes.engine import jobfiles
from tests.kubernetes.engine.conftest import ClusterRegatta
from tests.kubernetes.operator.running import Jobs

MANIFEST = Path(__file__).parents[3] / "deploy" / "v1" / "operator.yaml"

Grant = Callable[[str], ClusterRegatta]


@pytest.fixture
def grant(plane: ControlPlane, jobs: Jobs, tmp_path: Path) -> Grant:
    """alice with a role of Kubernetes' own, in the test's namespace only."""
    for document in yaml.safe_load_all(MANIFEST.read_text()):
        if document["kind"] == "ClusterRole" and "aggregate" in str(document["metadata"]):
            plane.kubectl("apply", "-f", "-", input=yaml.safe_dump(document))

    def bind(role: str) -> ClusterRegatta:
        options = ("--clusterrole", role, "--user", "alice", "-n", jobs.namespace)
        plane.kubectl("create", "rolebinding", f"alice-{role}", *options)
        regatta = ClusterRegatta(tmp_path, plane, jobs.namespace, user="alice")
        eventually(lambda: regatta("get").code == 0, "the right to look")
        return regatta

    return bind


def test_edit_is_enough_for_every_verb(grant: Grant, jobs: Jobs, name: str) -> None:
    regatta = grant("edit")
    text = jobfiles.text(jobfiles.running(name, workers=2))
    steps = [
        ["submit", "-"],
        ["wait", name, "--for", "running", "--timeout", "60s"],
        ["get", name],
        ["describe", name],
        ["logs", name],
        ["events", name],
        ["top"],
        ["scale", name, "--replicas", "3"],
        ["suspend", name],
        ["resume", name],
        ["submit", "-", "--replace"],
        ["stop", name],
        ["wait", name, "--for", "aborted", "--timeout", "60s"],
        ["delete", name],
    ]

    for step in steps:
        said = regatta(*step, stdin=text)
        assert said.code == 0, (step, said)


def test_view_is_enough_for_looking_and_for_nothing_else(
    grant: Grant,
    jobs: Jobs,
    name: str,
) -> None:
    regatta = grant("view")
    jobs.create(jobfiles.running(name, workers=1))
    jobs.wait_for_phase(name, "Running")

    for step in (["get"], ["describe", name], ["logs", name], ["events", name]):
        assert regatta(*step).code == 0, step
    top = regatta("top")
    assert top.code == 0
    assert "nodes are not shown: you may not list them" in top.err
    assert f"only jobs of namespace {jobs.namespace} are counted" in top.err
    stopped = regatta("stop", name)
    assert stopped.code == 5
    assert "alice, who may not patch paddlejobs" in stopped.err


def test_who_may_list_and_not_watch_is_told_so_at_once(
    plane: ControlPlane, jobs: Jobs, tmp_path: Path, name: str
) -> None:
    jobs.create(jobfiles.running(name, workers=1))
    rights = ("--verb=get,list", "--resource=paddlejobs.batch.paddlepaddle.org")
    plane.kubectl("create", "role", "looker", *rights, "-n", jobs.namespace)
    binding = ("--role=looker", "--user=alice", "-n", jobs.namespace)
    plane.kubectl("create", "rolebinding", "alice-looks", *binding)
    regatta = ClusterRegatta(tmp_path, plane, jobs.namespace, user="alice")
    eventually(lambda: regatta("get").code == 0, "the right to look")

    said = regatta("wait", name, "--for", "completed", "--timeout", "100s")

    assert said.code == 5
    assert "alice, who may not watch paddlejobs" in said.err
