"""What one change costs a team's server while a member watches, with few and with many finished
jobs of that member on record and in the engine."""

from __future__ import annotations

import http.client
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from sqlalchemy import Connection, insert, select
from tests.chaos.team_servers import Member, TeamProcess, eventually, job_text, records

from benchmarks.measure import Row, processor_seconds
from benchmarks.watch_cost import CHANGES, FEW, MANY, milliseconds_of, multiply
from regatta.engines.local.store.queries import compose
from regatta.server.records.job_tables import jobs
from regatta.server.records.recording.observations import fingerprint

PLACE = "/regatta/v1/namespaces/user-ann/jobs/changing"


def measure(folder: Path, _: dict[str, str]) -> list[Row]:
    few, many = (change_cost(folder / f"team-{count}", count) for count in (FEW, MANY))
    what = f"a team's server: the same for a member, {MANY:,} finished jobs"
    return [
        Row(what, milliseconds_of(many), milliseconds_of(few), f"the same with {FEW}", many / few)
    ]


def change_cost(folder: Path, finished: int) -> float:
    """Seconds of the server's processor time: whose it is, taking the change, deciding, storing,
    telling, recording, and its line in the audit."""
    folder.mkdir()
    server = TeamProcess(folder, f"sqlite:///{folder}/team.db")
    ann = server.account("ann")
    _finish_one(server, ann)
    multiply(server.state, finished)
    with records(server.url) as database:
        database.run_here(_multiply_records, server.state)
    server.start()
    try:
        assert server.process is not None
        pid = server.process.pid
        _change(ann, 2)  # everything is warm
        with _watching(server, ann) as seen:
            before = processor_seconds(pid)
            for number in range(CHANGES):
                _change(ann, 1 + number % 2)
                next(seen)
            return (processor_seconds(pid) - before) / CHANGES
    finally:
        server.kill()


def _finish_one(server: TeamProcess, ann: Member) -> None:
    server.start()
    assert ann.submit(job_text("done"), "done").status == 201
    assert ann.submit(job_text("changing", suspend=True), "changing").status == 201

    def settled() -> bool:
        phases = {job["metadata"]["name"]: job["status"].get("phase") for job in _jobs(ann)}
        return phases == {"done": "Completed", "changing": "Suspended"}

    eventually(settled, "one job's end")
    with records(server.url) as database:
        eventually(lambda: database.read_here(_is_written), "its record")
    server.stop()


def _jobs(ann: Member) -> list[dict[str, dict[str, str]]]:
    found: list[dict[str, dict[str, str]]] = ann.ask("GET", "/regatta/v1/jobs").body["items"]
    return found


def _is_written(connection: Connection) -> bool:
    done = select(jobs.c.settled).where(jobs.c.name == "done")
    return bool(connection.scalar(done))


def _multiply_records(connection: Connection, state: Path) -> None:
    """As many as the engine has: each as the recorder would have left it."""
    row = dict(connection.execute(select(jobs).where(jobs.c.name == "done")).mappings().one())
    (path,) = state.glob("*/regatta.db")
    with closing(sqlite3.connect(path)) as engine:
        found = engine.execute("SELECT document, status FROM jobs WHERE name LIKE 'done-%'")
        stored = [compose(document, status) for document, status in found]
    rows = []
    for job in stored:
        named = {"id": job.uid, "engine_uid": job.uid, "name": job.name, "engine_name": job.name}
        rows.append({**row, **named, "fingerprint": fingerprint(job)})
    if rows:
        connection.execute(insert(jobs), rows)


def _change(ann: Member, replicas: int) -> None:
    answer = ann.ask("POST", f"{PLACE}/scale", {"role": "t", "replicas": replicas})
    if answer.status >= 300:
        raise RuntimeError(f"scale: {answer}")


@contextmanager
def _watching(server: TeamProcess, ann: Member) -> Iterator[Iterator[bytes]]:
    """Changes as they are told, once everything that is there has been."""
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=300)) as connection:
        connection.request("GET", "/regatta/v1/watch", headers=ann.headers)
        lines = iter(connection.getresponse().readline, b"")
        while next(lines).rstrip() != b"event: synced":
            pass
        yield (line for line in lines if line.startswith(b"event: job"))
