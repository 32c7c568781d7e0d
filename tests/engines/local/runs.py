"""Real runs for tests: a builder, a runtime that cleans up after itself, and patience."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

from regatta.engines.base import LogLine, LogQuery
from regatta.engines.local.logs.reader import LogReader, PodLog
from regatta.engines.local.replicas.runspec import BackOff, Process, RunSpec, run_folder
from regatta.engines.local.replicas.runtime import RunPhase, RunState, Runtime

T = TypeVar("T")


def _allowed(flags: str) -> bool:
    """Whether this user may enter such a namespace; asked once, of the kernel itself."""
    return subprocess.run(["unshare", *flags.split(), "true"], capture_output=True).returncode == 0


HAS_NAMESPACES = _allowed("--mount") or _allowed("--user --mount")
CAN_MOUNT = os.geteuid() == 0 and _allowed("--mount")

AT_ONCE = BackOff(base_seconds=0.01, limit_seconds=0.02)


def eventually(look: Callable[[], T | None], seconds: float = 60.0) -> T:
    """The first true answer; a failure where none comes in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        answer = look()
        if answer:
            return answer
        time.sleep(0.005)
    raise AssertionError("it never happened")


def shell(script: str, name: str = "main", **changes: Any) -> Process:
    process: dict[str, Any] = {"env": {"PATH": os.environ["PATH"]}, "cwd": "/"} | changes
    return Process(name=name, argv=("sh", "-c", script), **process)


def python(program: str, **changes: Any) -> Process:
    process: dict[str, Any] = {"env": {"PATH": os.environ["PATH"]}, "cwd": "/"} | changes
    return Process(name="main", argv=(sys.executable, "-I", "-S", "-c", program), **process)


class Pod:
    """One pod's folder, and its present run."""

    def __init__(self, folder: Path, runtime: Runtime) -> None:
        self.folder = folder
        self.runtime = runtime
        self.uid = str(uuid.uuid4())
        self.run_ids: list[str] = []

    @property
    def run(self) -> Path:
        return run_folder(self.folder, 0)

    def spec(self, *containers: Process, **changes: Any) -> RunSpec:
        run_id = f"{self.uid}/0"
        return RunSpec(
            run_id=run_id, pod="pod", folder=str(self.run), containers=containers, **changes
        )

    def start(self, *containers: Process, **changes: Any) -> RunSpec:
        spec = self.spec(*containers, **changes)
        self.run_ids.append(spec.run_id)
        self.runtime.start(spec)
        return spec

    def play(self, *containers: Process, **changes: Any) -> RunState:
        self.start(*containers, **changes)
        return self.ended()

    def ended(self) -> RunState:
        return self.reaches(RunPhase.EXITED)

    def reaches(self, phase: RunPhase) -> RunState:
        def look() -> RunState | None:
            state = self.state()
            return state if state.phase is phase else None

        return eventually(look)

    def state(self) -> RunState:
        state = self.runtime.inspect(self.run)
        error = self.run / "supervisor-error.txt"
        assert not error.exists(), error.read_text()
        return state

    def says(self, text: str) -> None:
        """Wait until it has printed this."""
        eventually(lambda: any(text in line.text for line in self.lines()))

    def lines(self, **query: Any) -> list[LogLine]:
        with closing(LogReader(LogQuery(**query))) as reader:
            reader.add(PodLog(uid=self.uid, label="worker-0", folder=self.folder))
            return [line for batch in reader.read_more(ended=True) for line in batch.lines]

    def texts(self, **query: Any) -> list[str]:
        return [line.text for line in self.lines(**query)]


def alive(pid: int) -> bool:
    """Running, and not just waiting to be collected."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False
