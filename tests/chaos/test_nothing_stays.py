"""Whatever a replica's program does to hide, nothing of it outlives the replica."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.engines.local.control_groups import SOMEBODY, become_somebody, handed_over

__all__ = ["handed_over"]

HIDER = Path(__file__).with_name("hider.py")
PATIENCE = 60.0
#: One who hops is between two numbers for a moment: it is gone when so many looks see nobody.
LOOKS, BETWEEN_LOOKS = 30, 0.01
#: How often each end is tried; `REGATTA_TURNS=100` is the long version.
TURNS = int(os.environ.get("REGATTA_TURNS") or 1)


class User:
    """Someone with a state folder, who types `regatta`, perhaps in a control group of theirs."""

    def __init__(self, uid: int, group: Path | None = None) -> None:
        self.uid = uid
        self.group = group
        self.folder = Path(tempfile.mkdtemp(prefix="regatta-test-"))
        self._jobs: list[str] = []
        os.chown(self.folder, uid, uid)
        self._environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "REGATTA_HOME": str(self.folder / "home"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if os.path.isdir(path)),
        }
        #: Ours may stand where only we may look; then the system's, if it is of the same kind.
        self.python = ""
        for python in (sys.executable, f"/usr/bin/python3.{sys.version_info.minor}"):
            if self.run(python, "-c", "import regatta.server.run").returncode == 0:
                self.python = python
                break

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        become = [] if self.uid == os.geteuid() else become_somebody(self.uid, self.group)
        return subprocess.run(
            [*become, *command],
            env=self._environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    def regatta(self, *arguments: str) -> str:
        done = self.run(self.python, "-m", "regatta.cli.main", *arguments)
        assert done.returncode == 0, f"{arguments}: {done.stdout}{done.stderr}"
        return str(done.stdout)

    def starts_a_hider(self, name: str) -> Hider:
        """It is up, and has begun to hop."""
        self._jobs.append(name)
        hider = Hider(self.folder / f"{name}.beats")
        program = self.folder / "hider.py"
        shutil.copy(HIDER, program)
        container = {
            "name": "main",
            "image": "none",
            "command": [self.python, "-I", "-S", str(program), hider.token, str(hider.beats)],
        }
        pod = {"terminationGracePeriodSeconds": 0, "containers": [container]}
        job = {
            "apiVersion": "batch.paddlepaddle.org/v1",
            "kind": "PaddleJob",
            "metadata": {"name": name},
            "spec": {"tasks": [{"name": "t", "replicas": 1, "template": {"spec": pod}}]},
        }
        (self.folder / "job.yaml").write_text(json.dumps(job))
        self.regatta("submit", "job.yaml", "--no-preflight")
        eventually(hider.beats.exists, f"{name} hopping")
        eventually(lambda: len(hider.pids()) > 4, f"{name} leaving sleepers")
        return hider

    def loses_everything_that_watches(self) -> None:
        """Guardian, server and supervisors die together."""
        [address] = self.folder.glob("home/*/server.json")
        server = json.loads(address.read_text())["pid"]
        stat = Path(f"/proc/{server}/stat").read_text()
        guardian = int(stat.rpartition(")")[2].split()[1])
        for pid in (guardian, server, *self.supervisors()):
            os.kill(pid, signal.SIGKILL)

    def supervisors(self) -> list[int]:
        return [
            pid
            for pid, command in commands()
            if "/supervisor/__main__.py" in command and str(self.folder) in command
        ]

    def groups(self) -> list[str]:
        """Of its runs, where they have any."""
        runs = self.folder.glob("home/*/jobs/*/pods/*/runs/*/run.json")
        folders = [json.loads(run.read_text())["group"]["folders"] for run in runs]
        return [folder for each in folders for folder in each if os.path.exists(folder)]

    def leaves(self) -> None:
        with suppress(AssertionError):
            self.regatta("delete", *self._jobs)
        with suppress(AssertionError):
            self.regatta("server", "stop")
        shutil.rmtree(self.folder, ignore_errors=True)


class Hider:
    def __init__(self, beats: Path) -> None:
        self.token = f"hider-{uuid.uuid4()}"
        self.beats = beats

    def pids(self) -> list[int]:
        return [pid for pid, command in commands() if self.token in command]

    def is_gone(self) -> bool:
        before = self.beats.stat().st_mtime_ns
        for _ in range(LOOKS):
            if self.pids():
                return False
            time.sleep(BETWEEN_LOOKS)
        return self.beats.stat().st_mtime_ns == before


def commands() -> Iterator[tuple[int, str]]:
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            yield int(folder.name), (folder / "cmdline").read_bytes().decode("utf-8", "replace")


def eventually(look: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if look():
            return
        time.sleep(0.02)
    raise AssertionError(f"{what} did not happen in {PATIENCE:.0f} s")


def stop(user: User, name: str) -> None:
    user.regatta("stop", name)


def delete(user: User, name: str) -> None:
    user.regatta("delete", name)


def lose_everything(user: User, name: str) -> None:
    user.loses_everything_that_watches()
    user.regatta("get")  # which starts another server


@pytest.fixture(params=["root", "somebody", "somebody with a group"])
def user(request: pytest.FixtureRequest) -> Iterator[User]:
    mighty = os.geteuid() == 0
    if not mighty and request.param != "somebody":
        pytest.skip("only root can be root, or hand a control group to somebody")
    uid = SOMEBODY if mighty and request.param != "root" else os.geteuid()
    group = request.getfixturevalue("handed_over") if request.param.endswith("group") else None
    user = User(uid, group)
    if not user.python:
        shutil.rmtree(user.folder)
        pytest.skip(f"user {uid} may not read this checkout, or has no interpreter for it")
    yield user
    user.leaves()


@pytest.mark.timeout(120 * TURNS)
@pytest.mark.parametrize("end", [stop, delete, lose_everything])
def test_nothing_of_a_program_that_hides_is_left(
    user: User,
    end: Callable[[User, str], None],
    record_property: Callable[[str, object], None],
) -> None:
    for turn in range(TURNS):
        name = f"hider-{turn}"
        hider = user.starts_a_hider(name)
        if user.group is not None:
            [folder] = user.groups()
            assert folder.startswith(f"{user.group}/regatta/")
        end(user, name)
        eventually(hider.is_gone, f"the end of all of {name}")
        eventually(lambda: not user.supervisors(), "the end of its supervisor")
        eventually(lambda: not user.groups(), "the end of its group")
        record_property("programs that hide and were ended with their replica", 1)
