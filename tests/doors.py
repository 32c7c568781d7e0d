"""Real doors for tests: the command, its background server, and jobs small enough to run by the
dozen. Everything lives in a folder of the test's own and is gone when the test is."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple, TypeVar

import yaml

from regatta.api.errors import RegattaError
from regatta.client.blocking_channel import BlockingChannel
from regatta.client.channel import API, Query
from regatta.client.connect import connect
from regatta.client.event_stream import ServerEvent
from regatta.client.whereabouts import Named
from regatta.daemon.find import answering
from regatta.daemon.server_files import Address, ServerFiles, is_held
from regatta.engines.blocking import Blocking, Inline

SOURCE = Path(__file__).parent.parent / "src"
PATIENCE = 60.0
_OURS = ("REGATTA_SERVER", "REGATTA_NAMESPACE", "REGATTA_ENGINE")

T = TypeVar("T")


def eventually(attempt: Callable[[], T | None], what: str) -> T:
    """The first true answer; fails after a minute, which only a broken machine needs."""
    deadline = time.monotonic() + PATIENCE
    while True:
        if answer := attempt():
            return answer
        assert time.monotonic() < deadline, f"waited {PATIENCE:.0f} s in vain for {what}"
        time.sleep(0.02)


#: For a job that is ended by somebody, or stays until its server goes: with next to no work.
FOREVER = "echo up; while true; do sleep 1; done"


def shell_job(name: str, script: str = "echo hello", *, replicas: int = 1, **spec: object) -> str:
    """A job file whose workers run a shell script."""
    container = {"name": "main", "image": "none", "command": ["sh", "-c", script]}
    worker = {"replicas": replicas, "template": {"spec": {"containers": [container]}}}
    document = {
        "apiVersion": "batch.paddlepaddle.org/v1",
        "kind": "PaddleJob",
        "metadata": {"name": name},
        "spec": {"worker": worker, **spec},
    }
    return yaml.safe_dump(document)


def ps_job(name: str, server: str, worker: str, **spec: object) -> str:
    def role(script: str) -> dict[str, object]:
        container = {"name": "main", "image": "none", "command": ["sh", "-c", script]}
        return {"replicas": 1, "template": {"spec": {"containers": [container]}}}

    document = yaml.safe_load(shell_job(name))
    document["spec"] = {"withGloo": 0, "ps": role(server), "worker": role(worker), **spec}
    return yaml.safe_dump(document)


class Said(NamedTuple):
    code: int
    out: str
    err: str


class Regatta:
    """The `regatta` command with a state folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {
            **os.environ,
            "REGATTA_HOME": str(folder / "home"),
            "PYTHONPATH": str(SOURCE),
            "COLUMNS": "120",
        }
        for name in ("NO_COLOR", "FORCE_COLOR", *_OURS):
            self.environment.pop(name, None)

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "regatta.cli.main", *words]

    def __call__(self, *words: str, stdin: str = "", **environment: str) -> Said:
        done = subprocess.run(
            self.command(*words),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=120,
            cwd=self.folder,
            env={**self.environment, **environment},
        )
        return Said(done.returncode, done.stdout, done.stderr)

    def start(self, *words: str) -> subprocess.Popen[str]:
        return self._start(self.command(*words))

    def start_python(self, *words: str) -> subprocess.Popen[str]:
        """As `start`, for a test that has to look into the command."""
        return self._start([sys.executable, *words])

    def _start(self, command: list[str]) -> subprocess.Popen[str]:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            env=self.environment,
        )

    def write(self, text: str, name: str = "job.yaml") -> str:
        path = self.folder / name
        path.write_text(text)
        return str(path)

    @property
    def files(self) -> ServerFiles:
        home = self.folder / "home"
        folders = [path for path in home.iterdir() if path.is_dir()] if home.exists() else []
        return ServerFiles(folders[0] if folders else home / "none")

    @property
    def address(self) -> Address:
        """Of the server that runs now; waits for one that is being restarted."""
        return eventually(lambda: answering(self.files), "a server that answers")

    @property
    def client(self) -> Blocking:
        """A client of that server, and of no later one that is elsewhere."""
        return connect(self.address.url, token=self.files.token())

    @property
    def wire(self) -> Wire:
        return Wire(self.address.url, self.files.token())

    @contextmanager
    def serving(self, *words: str) -> Iterator[Blocking]:
        """`regatta serve` in the foreground, spoken to as any program would."""
        with self.start("serve", *words) as process:
            assert process.stdout is not None
            try:
                url = process.stdout.readline().removeprefix("serving ").strip()
                folder = process.stdout.readline().partition(": ")[2].strip()
                yield connect(url, token=ServerFiles(Path(folder)).token())
            finally:
                process.terminate()

    def clean(self) -> None:
        """Ends every job, the server and its guardian, and waits until they are gone."""
        if not self.files.folder.exists():
            return
        if is_held(self.files.guardian_lock) or answering(self.files):
            delete_everything(self.client)
            self("server", "stop")
        for lock in (self.files.server_lock, self.files.guardian_lock):
            eventually(lambda lock=lock: not is_held(lock), f"{lock.name} to be free")


class Wire:
    """A server's requests and streams as they travel, for tests of what travels."""

    def __init__(self, url: str, token: str) -> None:
        self._channel = BlockingChannel(Named(url, token))
        self._runner = Inline()

    def request(self, method: str, path: str, body: object = None) -> bytes:
        return self._runner.run(self._channel.request(method, API + path, body=body))

    def events(
        self, path: str, query: Query | None = None, last_id: str = ""
    ) -> Generator[ServerEvent, None, None]:
        """Of one connection; a broken one is not taken up again."""
        return self._runner.stream(self._channel.events(API + path, query=query, last_id=last_id))


def delete_everything(client: Blocking) -> None:
    def empty() -> bool:
        for job in client.list():
            if not job.deleting:
                with suppress(RegattaError):  # gone meanwhile
                    client.delete(job.namespace, job.name)
        return not client.list()

    eventually(empty, "the jobs to be gone")


@contextmanager
def a_regatta(folder: Path) -> Iterator[Regatta]:
    regatta = Regatta(folder)
    try:
        yield regatta
    finally:
        regatta.clean()


class Terminal:
    """A command on a pseudo-terminal: what a person sees, and the keys they press."""

    def __init__(self, regatta: Regatta, *words: str) -> None:
        self.seen = ""
        command = regatta.command(*words)
        self.pid, self._descriptor = pty.fork()
        if self.pid == 0:  # pragma: no cover - the child
            os.chdir(regatta.folder)
            os.execve(command[0], command, {**regatta.environment, "TERM": "xterm"})
        self._code: int | None = None

    def press_ctrl_c(self) -> None:
        os.write(self._descriptor, b"\x03")

    def type(self, text: str) -> None:
        os.write(self._descriptor, text.encode())

    def until(self, pattern: str) -> str:
        """Reads until `pattern` was seen."""
        found = eventually(lambda: self._read() and re.search(pattern, self.seen), repr(pattern))
        return found.group()

    def end(self) -> int:
        """Reads to the end; the exit code."""
        eventually(lambda: not self._read(), f"the end; seen so far: {self.seen}")
        return self.code()

    def code(self) -> int:
        if self._code is None:
            self._code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
            os.close(self._descriptor)
        return self._code

    def close(self) -> None:
        if self._code is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            self.code()

    def _read(self) -> bool:
        """False once the command has closed its terminal."""
        ready, _, _ = select.select([self._descriptor], [], [], 0.05)
        if not ready:
            return True
        try:
            got = os.read(self._descriptor, 65536)
        except OSError:
            return False
        self.seen += got.decode("utf-8", "replace")
        return bool(got)


OpenTerminal = Callable[..., Terminal]


@contextmanager
def terminals(regatta: Regatta) -> Iterator[OpenTerminal]:
    """Windows in which its commands run, closed in the end."""
    opened: list[Terminal] = []

    def open_terminal(*words: str) -> Terminal:
        opened.append(Terminal(regatta, *words))
        return opened[-1]

    try:
        yield open_terminal
    finally:
        for one in opened:
            one.close()
