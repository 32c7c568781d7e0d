"""What the training tests stand on: a Python that has Paddle, and a Regatta of the test's own."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
EXAMPLES = REPOSITORY / "examples"
REQUIREMENTS = REPOSITORY / "requirements" / "paddle.txt"
#: Where `make demo` puts it too.
PADDLE_VENV = REPOSITORY / ".venv-paddle"
#: More than any example needs on a busy machine, less than pytest's own limit.
PATIENCE_SECONDS = 240


@pytest.fixture(scope="session")
def paddle_python(request: pytest.FixtureRequest) -> Path:
    """The interpreter of `.venv-paddle`, which `make test` makes; made here when it is missing."""
    python = PADDLE_VENV / "bin" / "python"
    capture = request.config.pluginmanager.getplugin("capturemanager")
    # Parallel test processes all come here; one installs, the others wait for it.
    with REQUIREMENTS.open() as one_at_a_time:
        fcntl.flock(one_at_a_time, fcntl.LOCK_EX)
        if not (PADDLE_VENV / ".installed").exists():
            with capture.global_and_fixture_disabled():
                subprocess.run(
                    ["scripts/make-venv", PADDLE_VENV.name, REQUIREMENTS.relative_to(REPOSITORY)],
                    cwd=REPOSITORY,
                    check=True,
                )
    return python


class Regatta:
    """The command, as a user has it, with a home of its own."""

    def __init__(self, home: Path) -> None:
        self._environment = {
            **os.environ,
            "REGATTA_HOME": str(home),
            "PYTHONPATH": str(REPOSITORY / "src"),
        }

    def __call__(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "regatta.cli.main", *map(str, arguments)],
            cwd=REPOSITORY,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )

    def run(self, job_file: str, *options: str | Path) -> subprocess.CompletedProcess[str]:
        """`regatta run` of an example, from the repository's root, as its README says."""
        return self("run", f"examples/{job_file}", *options)

    def job(self, name: str) -> dict[str, Any]:
        shown = self("get", name, "-o", "json")
        assert shown.returncode == 0, shown.stderr
        document: dict[str, Any] = json.loads(shown.stdout)
        return document

    def log(self, name: str) -> str:
        shown = self("logs", name)
        assert shown.returncode == 0, shown.stderr
        return shown.stdout

    def leave(self) -> None:
        """End what `cleanPodPolicy: Never` left running, then the server."""
        self("delete", "--all", "--yes")
        self("server", "stop")


@pytest.fixture
def regatta(tmp_path: Path) -> Iterator[Regatta]:
    command = Regatta(tmp_path / "home")
    yield command
    command.leave()
