"""A team's server that tests start, kill and start again: the real command, on one port."""

from __future__ import annotations

import http.client
import json
import os
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from regatta.server.accounts.administration import add_user
from regatta.server.accounts.passwords import Hashes
from regatta.server.accounts.tokens import Kind, issue
from regatta.server.records.moments import now_millis
from regatta.server.records.team_database import Database
from tests.kubernetes.controlplane.processes import free_port

PATIENCE = 60.0
#: Nobody is to be refused for asking often.
SETTINGS = """
team:
  rates: {{requests: "off", lists: "off", submits: "off", signInAddress: "off", signInName: "off"}}
  isolation: {{work: {work}}}
"""
JOB = """
apiVersion: batch.paddlepaddle.org/v1
kind: PaddleJob
metadata: {{name: {name}}}
spec:
  runPolicy: {policy}
  tasks:
  - name: t
    replicas: 1
    template:
      spec:
        containers:
        - {{name: main, image: none, command: [sh, -c, {script}]}}
"""


def job_text(name: str, script: str = "true", **policy: object) -> str:
    return JOB.format(name=name, script=json.dumps(script), policy=json.dumps(policy))


class Answer(NamedTuple):
    status: int
    body: Any


class Member:
    """Somebody with a token, who sends requests to one place and knows nothing else of it."""

    def __init__(self, port: int, token: str, secure: ssl.SSLContext | None = None) -> None:
        self._port, self._secure = port, secure
        self.token = token
        self.headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def ask(
        self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """`body`: text as it is, all else as JSON. Raises OSError or HTTPException where no answer
        came."""
        with closing(self._connect()) as connection:
            sent = body if body is None or isinstance(body, str) else json.dumps(body)
            connection.request(method, path, sent, {**self.headers, **(headers or {})})
            answer = connection.getresponse()
            text = answer.read()
        is_json = answer.headers.get_content_type() == "application/json"
        return Answer(answer.status, json.loads(text) if is_json else text.decode())

    @contextmanager
    def kept_open(self) -> Iterator[Callable[[str], Any]]:
        """What GETs answer, on one connection."""
        with closing(self._connect()) as connection:

            def ask(path: str) -> Any:
                connection.request("GET", path, headers=self.headers)
                answer = connection.getresponse()
                text = answer.read()
                assert answer.status == 200, text
                return json.loads(text)

            yield ask

    def submit(self, text: str, key: str, **more: object) -> Answer:
        return self.ask("POST", "/regatta/v1/jobs", {"text": text, "key": key, **more})

    def _connect(self) -> http.client.HTTPConnection:
        if self._secure is not None:
            return http.client.HTTPSConnection(
                "127.0.0.1", self._port, timeout=PATIENCE, context=self._secure
            )
        return http.client.HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE)


class TeamProcess:
    """Runs between `start` and `kill` or `stop`, any number of times."""

    def __init__(self, folder: Path, url: str, *flags: str, settings: str = "") -> None:
        """`settings`: more lines of its `config.yaml`."""
        self.url, self._flags = url, flags
        self.state = folder / "home"
        self.state.mkdir()
        text = SETTINGS.format(work=folder / "work") + settings
        (self.state / "config.yaml").write_text(text)
        self._log = folder / "server.log"
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "REGATTA_HOME": str(self.state), "REGATTA_PODS": "8"}

    @property
    def log(self) -> str:
        return self._log.read_text() if self._log.exists() else ""

    def account(self, name: str, *, admin: bool = False, kind: Kind = Kind.APPLICATION) -> Member:
        """Made as the command on its machine would."""
        database = Database(self.url)
        try:
            user = database.run_here(
                add_user, Hashes(), name, "correct-horse-1", now_millis(), admin=admin
            )
            issued = database.run_here(issue, user.id, kind, now_millis())
        finally:
            database.close()
        return Member(self.port, issued.value)

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "regatta.cli.main", *words]

    def launch(self) -> subprocess.Popen[bytes]:
        words = ["serve", "--team", "--port", str(self.port), "--database", self.url]
        if "--isolation" not in self._flags:
            words += ["--isolation", "none"]
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command(*words, *self._flags), env=self.environment, stdout=log, stderr=log
            )
        return self.process

    def start(self) -> TeamProcess:
        process = self.launch()
        deadline = time.monotonic() + PATIENCE
        while not self._answers(process.pid):
            assert process.poll() is None, self.log
            assert time.monotonic() < deadline, f"no answer in {PATIENCE:g} s: {self.log}"
            time.sleep(0.02)
        return self

    def _answers(self, pid: int) -> bool:
        try:
            with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)) as asked:
                asked.request("GET", "/healthz")
                return json.loads(asked.getresponse().read())["pid"] == pid
        except (OSError, http.client.HTTPException, ValueError):
            return False

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def stop(self) -> int | None:
        """In order; its exit status."""
        return self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> int | None:
        if self.process is None:
            return None
        self.process.send_signal(number)
        code = self.process.wait(PATIENCE)
        self.process = None
        return code


@contextmanager
def records(url: str) -> Iterator[Database]:
    """A second pair of eyes on what a server writes."""
    database = Database(url)
    try:
        yield database
    finally:
        database.close()


def eventually(look: Callable[[], bool], what: str, patience: float = PATIENCE) -> None:
    deadline = time.monotonic() + patience
    while not look():
        assert time.monotonic() < deadline, f"{what} did not happen in {patience:g} s"
        time.sleep(0.05)
