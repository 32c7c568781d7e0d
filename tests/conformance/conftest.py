"""Every behaviour is played on each engine, directly and through a server in front of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from regatta.client.connect import connect
from regatta.engines.blocking import Blocking
from regatta.engines.kubernetes.engine.engine import open_cluster
from regatta.server.team.account_namespaces import account_namespace
from tests.conformance.stages import (
    Stage,
    a_shell,
    ends_by_annotation,
    ends_by_file,
    ends_by_file_in,
)
from tests.doors import Regatta, a_regatta
from tests.engines.local.opening import engine, home, open_engine
from tests.kubernetes.conftest import namespace, plane
from tests.kubernetes.controlplane.plane import ControlPlane
from tests.kubernetes.operator.conftest import cluster, jobs, operator
from tests.server.team.serving import TeamServer, a_team_server

__all__ = ["cluster", "engine", "home", "jobs", "namespace", "open_engine", "operator", "plane"]


def ways(cluster: str) -> list[Any]:
    """In, for the parameters of a fixture. `cluster`: the group of tests that share a worker with
    what the last two need (`tests/conftest.py`), which nothing but asking for it would tell."""
    together = pytest.mark.xdist_group(cluster)
    on_cluster = ("kubernetes", "kubernetes through REST")
    here = ("local", "local through REST", "local for a team")
    return [*here, *(pytest.param(w, marks=together) for w in on_cluster)]


@pytest.fixture(params=ways("plane of tests/conformance"))
def play(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stage]:
    stage = _stage(request, tmp_path)
    yield stage
    if request.param in ("local through REST", "local for a team"):
        stage.engine.delete_many(stage.namespace, live=True)  # the server is the next test's too


def _stage(request: pytest.FixtureRequest, tmp_path: Path) -> Stage:
    if request.param == "local for a team":
        team: TeamServer = request.getfixturevalue("team_server")
        account = _as_name(tmp_path.name)[:40]
        member = connect(team.url, token=team.token(account))
        return Stage(member, account_namespace(account), ends_by_file_in(team.work), None)
    if request.param.startswith("local"):
        folder = tmp_path / "told"
        folder.mkdir()
        engine: Blocking = request.getfixturevalue(
            "engine" if request.param == "local" else "local_server"
        )
        space = "default" if request.param == "local" else f"play-{tmp_path.name}"[:63].rstrip("-")
        return Stage(engine, _as_name(space), ends_by_file(folder), a_shell(folder))
    jobs = request.getfixturevalue("jobs")
    engine = request.getfixturevalue(
        "cluster_engine" if request.param == "kubernetes" else "cluster_server"
    )
    return Stage(engine, jobs.namespace, ends_by_annotation(jobs), None)


@pytest.fixture(scope="session")
def local_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Blocking]:
    with a_regatta(tmp_path_factory.mktemp("served")) as regatta:
        assert regatta("server", "start").code == 0
        yield regatta.client


@pytest.fixture(scope="session")
def team_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TeamServer]:
    """Every test is an account of its own, so that all may name their jobs alike."""
    with a_team_server(tmp_path_factory.mktemp("team")) as server:
        yield server


@pytest.fixture(scope="package")
def cluster_engine(cluster: ControlPlane) -> Iterator[Blocking]:
    engine = open_cluster(cluster.admin_kubeconfig, None, "")
    yield engine
    engine.close()


@pytest.fixture(scope="package")
def cluster_server(
    cluster: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Blocking]:
    """`regatta serve --engine kubernetes`, as a process of its own."""
    regatta = Regatta(tmp_path_factory.mktemp("cluster-server"))
    kubeconfig = ("--kubeconfig", str(cluster.admin_kubeconfig))
    with regatta.serving("--engine", "kubernetes", *kubeconfig) as engine:
        yield engine


def _as_name(text: str) -> str:
    """As a namespace may be called."""
    return "".join(letter if letter.isalnum() else "-" for letter in text.lower())
