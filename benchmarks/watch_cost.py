"""What one change costs the server while somebody watches, with few and with many finished jobs."""

from __future__ import annotations

import http.client
import json
import sqlite3
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.jobs import task_job
from benchmarks.measure import REGATTA, Row, processor_seconds

FEW, MANY = 100, 30_000
CHANGES = 200


def measure(folder: Path, env: dict[str, str]) -> list[Row]:
    few = change_cost(REGATTA, folder / "few", env, FEW)
    many = change_cost(REGATTA, folder / "many", env, MANY)
    what = f"processor time of a change that one watcher sees, {MANY:,} finished jobs"
    return [
        Row(what, milliseconds_of(many), milliseconds_of(few), f"the same with {FEW}", many / few)
    ]


def change_cost(
    regatta: str, home: Path, env: dict[str, str], finished: int, changes: int = CHANGES
) -> float:
    """Seconds of the server's processor time: taking the change, deciding, storing, telling."""
    home.mkdir()
    env = {**env, "REGATTA_HOME": str(home)}
    _finish_one(regatta, home, env)
    multiply(home, finished)
    with _serving(regatta, home, env) as server:
        server.change("POST", "/scale", {"role": "t", "replicas": 2})  # everything is warm
        with server.watching() as seen:
            before = processor_seconds(server.pid)
            for number in range(changes):
                server.change("POST", "/scale", {"role": "t", "replicas": 1 + number % 2})
                next(seen)
            return (processor_seconds(server.pid) - before) / changes


def _finish_one(regatta: str, home: Path, env: dict[str, str]) -> None:
    job = task_job(home, "done", ["true"])
    waiting = task_job(home, "changing", ["true"])
    for command in (
        ["submit", str(job), "--wait"],
        ["submit", str(waiting), "--set", "spec.runPolicy.suspend=true"],
        ["wait", "changing", "--for", "suspended"],
        ["server", "stop"],
    ):
        subprocess.run([regatta, *command], env=env, check=True, capture_output=True)


def multiply(home: Path, finished: int) -> None:
    """The finished job, so many times, as the store keeps it."""
    (database,) = home.glob("*/regatta.db")
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.row_factory = sqlite3.Row
        row = dict(connection.execute("SELECT * FROM jobs WHERE name = 'done'").fetchone())
        columns = ", ".join(row)
        places = ", ".join(f":{column}" for column in row)
        for number in range(1, finished):
            uid, name = str(uuid.uuid4()), f"done-{number}"
            document = row["document"].replace(row["uid"].encode(), uid.encode())
            document = document.replace(b'"name":"done"', f'"name":"{name}"'.encode())
            copy = {**row, "uid": uid, "name": name, "document": document}
            copy["queued"] = row["queued"] + number
            connection.execute(f"INSERT INTO jobs ({columns}) VALUES ({places})", copy)
        last = "UPDATE counters SET value = value + ? WHERE name = 'sequence'"
        connection.execute(last, (finished,))


class _Server:
    def __init__(self, pid: int, url: str, token: str) -> None:
        self.pid = pid
        self._place = urlsplit(url).netloc
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def change(self, method: str, verb: str, body: object) -> None:
        path = f"/regatta/v1/namespaces/default/jobs/changing{verb}"
        with closing(http.client.HTTPConnection(self._place, timeout=120)) as connection:
            connection.request(method, path, json.dumps(body), self._headers)
            answer = connection.getresponse()
            if answer.status >= 300:
                raise RuntimeError(f"{verb}: {answer.read()!r}")
            answer.read()

    @contextmanager
    def watching(self) -> Iterator[Iterator[bytes]]:
        """Changes as they are told, once everything that is there has been."""
        with closing(http.client.HTTPConnection(self._place, timeout=300)) as connection:
            connection.request("GET", "/regatta/v1/watch", headers=self._headers)
            answer = connection.getresponse()
            lines = iter(answer.readline, b"")
            while next(lines).rstrip() != b"event: synced":
                pass
            yield (line for line in lines if line.startswith(b"event: job"))


@contextmanager
def _serving(regatta: str, home: Path, env: dict[str, str]) -> Iterator[_Server]:
    with subprocess.Popen(
        [regatta, "serve"], env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        try:
            first = process.stdout.readline()
            (token,) = home.glob("*/server.token")
            yield _Server(process.pid, first.split()[-1], token.read_text().strip())
        finally:
            process.terminate()


def milliseconds_of(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms"
