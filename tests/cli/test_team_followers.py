"""Whoever follows a job at a team's server is told when the server goes away."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from regatta.server.accounts.tokens import Kind
from tests.chaos.team_servers import Member, TeamProcess, eventually, job_text
from tests.doors import Regatta

FOLLOWERS = {
    "run": ["run", "job.yaml"],
    "logs": ["logs", "-f", "followed"],
    "get": ["get", "--watch"],
    "events": ["events", "-f"],
}
SCRIPT = "echo up; until [ -e {folder}/go ]; do sleep 0.1; done; echo down"


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[TeamProcess]:
    server = TeamProcess(tmp_path, f"sqlite:///{tmp_path}/team.db", "--isolation", "none").start()
    yield server
    server.kill()


@pytest.fixture
def follower(tmp_path: Path, serving: TeamProcess) -> Iterator[tuple[Regatta, Member]]:
    """Somebody on another machine."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    away = Regatta(folder)
    ann = serving.account("ann", admin=True, kind=Kind.SIGN_IN)
    away.environment["REGATTA_TOKEN"] = ann.token
    yield away, ann
    (folder / "go").touch()


def _started(away: Regatta, url: str, kind: str, err: Path) -> subprocess.Popen[str]:
    out = err.with_suffix(".out")
    with err.open("w") as errors, out.open("w") as output:
        return subprocess.Popen(
            away.command("--server", url, *FOLLOWERS[kind]),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            text=True,
            cwd=away.folder,
            env={**away.environment, "PYTHONUNBUFFERED": "1"},
        )


@pytest.mark.parametrize("kind", FOLLOWERS)
def test_a_follower_says_once_that_the_server_is_away_and_goes_on_when_it_is_back(
    serving: TeamProcess, follower: tuple[Regatta, Member], tmp_path: Path, kind: str
) -> None:
    away, ann = follower
    url = f"http://127.0.0.1:{serving.port}"
    text = job_text("followed", SCRIPT.format(folder=away.folder))
    away.write(text)
    if kind != "run":
        assert ann.submit(text, "key-of-the-follower").status < 300
    log = tmp_path / "follower.err"
    running = _started(away, url, kind, log)

    def said() -> str:
        return log.read_text() + log.with_suffix(".out").read_text()

    try:
        first = {"get": "followed", "events": "followed"}.get(kind, "up")
        eventually(lambda: first in said(), "the first line")
        if kind == "logs":
            assert ann.ask("POST", "/regatta/v1/server/stop").status < 300
            assert serving.process is not None
            serving.process.wait(60)
        else:
            serving.stop()
        eventually(lambda: f"the server at {url} is away; looking for it" in said(), "the word")
        serving.start()
        (away.folder / "go").touch()
        if kind in ("run", "logs"):
            assert running.wait(60) == 0, said()
            assert "down" in said()
        assert said().count("is away") == 1, said()
    finally:
        running.kill()
        running.wait()
