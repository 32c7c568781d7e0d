"""Every behaviour is played on both engines."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.stages import ClusterStage, LocalStage, Play, Stage
from tests.engines.local.opening import engine, home, open_engine
from tests.kubernetes.conftest import namespace, plane
from tests.kubernetes.operator.conftest import cluster, jobs, operator

__all__ = ["cluster", "engine", "home", "jobs", "namespace", "open_engine", "operator", "plane"]


@pytest.fixture(params=["local", "kubernetes"])
def play(request: pytest.FixtureRequest, tmp_path: Path) -> Play:
    stage: Stage
    if request.param == "local":
        folder = tmp_path / "told"
        folder.mkdir()
        stage = LocalStage(request.getfixturevalue("engine"), folder)
    else:
        stage = ClusterStage(request.getfixturevalue("jobs"))
    return Play(stage)
