"""A state folder that was used for months: what one waits for, beside one that is nearly new.

Every finished job is there as the store and the disk keep it, more of them than retention allows;
the server tidies up first. Then both folders are asked in turns.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import time
import uuid
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.jobs import task_job
from benchmarks.measure import REGATTA, Row, interleaved, milliseconds, until_line, whole

FEW, MANY = 100, 20_000
#: What retention keeps unless it is told otherwise.
KEPT = 2000
TURNS = 15
PATIENCE = 1200.0


def measure(folder: Path, env: dict[str, str]) -> list[Row]:
    homes = [folder / "months-few", folder / "months-many"]
    envs = [{**env, "REGATTA_HOME": str(home)} for home in homes]
    try:
        for home, own, finished in zip(homes, envs, (FEW, MANY), strict=True):
            _fill(home, own, finished)
        rows = [_room(envs[1], homes[1])]
        for what, take in MEASURED.items():
            few, many = interleaved(TURNS, *(partial(take, folder, own) for own in envs))
            peer = f"the same with {FEW}"
            title = f"{what}, {MANY:,} jobs have finished"
            rows.append(Row(title, milliseconds(many), milliseconds(few), peer, many / few))
        return rows
    finally:
        for own in envs:
            subprocess.run([REGATTA, "server", "stop"], env=own, check=False, capture_output=True)


def _get(folder: Path, env: dict[str, str]) -> float:
    return whole([REGATTA, "get"], env)


def _submit(folder: Path, env: dict[str, str]) -> float:
    job = task_job(folder, "submitted", ["true"])
    took = whole([REGATTA, "submit", str(job)], env)
    subprocess.run([REGATTA, "wait", "submitted"], env=env, check=True, capture_output=True)
    return took


def _first_line(folder: Path, env: dict[str, str]) -> float:
    job = task_job(folder, "started", ["echo", "it-started"])
    return until_line([REGATTA, "run", str(job), "--replace"], "it-started", env)


def _server_start(folder: Path, env: dict[str, str]) -> float:
    subprocess.run([REGATTA, "server", "stop"], env=env, check=True, capture_output=True)
    return whole([REGATTA, "server", "start"], env)


MEASURED = {
    "`regatta get`": _get,
    "`regatta submit`": _submit,
    "`regatta run` to the first line": _first_line,
    "`regatta server start`": _server_start,
}


def _room(env: dict[str, str], home: Path) -> Row:
    """Of what the folder holds, against 10 GB."""
    used = sum(path.lstat().st_blocks * 512 for path in home.rglob("*"))
    what = f"room on disk, {MANY:,} jobs have finished, {_storage(env)['runs']:,} runs kept"
    return Row(what, f"{used / 1e6:.0f} MB", "10 GB", "the bound", used / 1e10)


def _fill(home: Path, env: dict[str, str], finished: int) -> None:
    home.mkdir()
    job = task_job(home, "done", ["true"])
    for command in (["submit", str(job), "--wait"], ["server", "stop"]):
        subprocess.run([REGATTA, *command], env=env, check=True, capture_output=True)
    multiply(home, finished)
    subprocess.run([REGATTA, "server", "start"], env=env, check=True, capture_output=True)
    deadline = time.monotonic() + PATIENCE
    while not _is_tidy(env, home):
        if time.monotonic() > deadline:
            raise RuntimeError(f"not tidied up in {PATIENCE:.0f} s: {_storage(env)}")
        time.sleep(1)


def _is_tidy(env: dict[str, str], home: Path) -> bool:
    (jobs,) = home.glob("*/jobs")
    return _storage(env)["runs"] <= KEPT and sum(1 for _ in jobs.iterdir()) <= KEPT


def _storage(env: dict[str, str]) -> dict[str, Any]:
    said = subprocess.run(
        [REGATTA, "server", "status", "-o", "json"], env=env, check=True, capture_output=True
    )
    storage: dict[str, Any] = json.loads(said.stdout)["storage"]
    return storage


def multiply(home: Path, finished: int) -> None:
    """The one finished job there is, so many times: its rows and its folder."""
    (database,) = home.glob("*/regatta.db")
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.row_factory = sqlite3.Row
        rows = {
            table: [dict(row) for row in connection.execute(f"SELECT * FROM {table}")]
            for table in ("jobs", "runs", "pods", "environments", "events")
        }
        (first,) = rows["jobs"]
        for number in range(1, finished):
            uid = str(uuid.uuid4())
            changes = {first["uid"]: uid, '"name":"done"': f'"name":"done-{number}"'}
            changes |= {pod["uid"]: str(uuid.uuid4()) for pod in rows["pods"]}
            for table, found in rows.items():
                for row in found:
                    _insert(connection, table, _changed(table, row, number, changes))
            _copy(database.parent / "jobs", changes, first["uid"], uid)
        last = "UPDATE counters SET value = value + ? WHERE name = 'sequence'"
        connection.execute(last, (finished,))


def _changed(
    table: str, row: dict[str, Any], number: int, changes: dict[str, str]
) -> dict[str, Any]:
    other = {column: _renamed(value, changes) for column, value in row.items()}
    if table in ("jobs", "runs"):
        other |= {"name": f"done-{number}", "queued": row["queued"] + number}
    if table == "events":
        other["id"] = None
    return other


def _renamed(value: Any, changes: dict[str, str]) -> Any:
    for old, new in changes.items():
        if isinstance(value, str):
            value = value.replace(old, new)
        elif isinstance(value, bytes):
            value = value.replace(old.encode(), new.encode())
    return value


def _insert(connection: sqlite3.Connection, table: str, row: dict[str, Any]) -> None:
    places = ", ".join(f":{column}" for column in row)
    connection.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({places})", row)


def _copy(jobs: Path, changes: dict[str, str], old: str, new: str) -> None:
    shutil.copytree(jobs / old, jobs / new)
    for pod in list((jobs / new / "pods").iterdir()):
        pod.rename(pod.with_name(changes[pod.name]))
