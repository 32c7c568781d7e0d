"""A team's list of jobs: a page with its total from 30,000 on record, beside the bare SQL of it; as
the records answer, and as OpenPAI's route does."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Select, insert, text
from tests.chaos.team_servers import TeamProcess
from tests.server.records.postgresql import PostgreSQL, why_no_postgresql

from benchmarks.measure import Row, interleaved
from regatta.server.records.job_lists import (
    JobFilter,
    Order,
    SortBy,
    count_query,
    list_jobs,
    page_query,
    searched,
)
from regatta.server.records.job_tables import documents, jobs, tags
from regatta.server.records.team_database import Database

MANY, USERS, RUNS, PAGE = 30_000, 60, 15, 50
NOW = 1_800_000_000_000
STATES = ("SUCCEEDED", "SUCCEEDED", "FAILED", "STOPPED", "RUNNING", "WAITING")
QUESTIONS = {
    "the first page": (JobFilter(), Order()),
    "failed ones, by completion": (
        JobFilter(states=("FAILED",)),
        Order(SortBy.COMPLETION_TIME, True),
    ),
    "a keyword, by name": (JobFilter(keyword="el-12"), Order(SortBy.JOB_NAME, False)),
}
#: The same, as OpenPAI's clients ask.
ASKED = {
    "the first page": "",
    "failed ones, by completion": "&state=FAILED&order=completionTime,DESC",
    "a keyword, by name": "&keyword=el-12&order=jobName,ASC",
}


def measure(folder: Path, _: dict[str, str]) -> list[Row]:
    rows = measured("SQLite", f"sqlite:///{folder}/team/records.sqlite", folder / "on-sqlite")
    with _postgresql() as url:
        if url is not None:
            rows += measured("PostgreSQL", url, folder / "on-postgresql")
    return rows


def measured(title: str, url: str, folder: Path) -> list[Row]:
    database = Database(url)
    try:
        database.run_here(_fill)
        if not database.address.is_sqlite:
            database.run_here(lambda connection: connection.execute(text("ANALYZE")))
        rows = [_question(database, title, name) for name in QUESTIONS]
        with _served(url, folder) as ask:
            return rows + [_route(database, title, name, ask) for name in QUESTIONS]
    finally:
        database.close()


@contextmanager
def _served(url: str, folder: Path) -> Iterator[Callable[[str], Any]]:
    """Answers to an admin of a server on these records."""
    folder.mkdir()
    server = TeamProcess(folder, url)
    boss = server.account("boss", admin=True)
    server.start()
    try:
        with boss.kept_open() as ask:
            yield ask
    finally:
        server.kill()


def _route(database: Database, title: str, name: str, ask: Callable[[str], Any]) -> Row:
    """Who asks is on the same machine, and its connection stays: all of it is the server's time."""
    said = database.read_here(_bare, *QUESTIONS[name])
    path = f"/api/v2/jobs?withTotalCount=true&limit={PAGE}{ASKED[name]}"

    def route() -> float:
        start = time.perf_counter()
        answer = ask(path)
        took = time.perf_counter() - start
        assert len(answer["data"]) == PAGE
        return took

    mine, driver = interleaved(RUNS, route, _timed(database, _bare_read(said)))
    what = f"{title}, the same through the server: {name}"
    return Row(what, _ms(mine), _ms(driver), "the bare SQL of it", mine / driver)


def _question(database: Database, title: str, name: str) -> Row:
    wanted, order = QUESTIONS[name]
    said = database.read_here(_bare, wanted, order)

    def ours(connection: Connection) -> None:
        assert list_jobs(connection, wanted, order, limit=PAGE).total > PAGE

    bare = _bare_read(said)
    mine, driver = interleaved(RUNS, _timed(database, ours), _timed(database, bare))
    what = f"{title}, {MANY:,} jobs on record: {name}, {PAGE} of them with the total"
    return Row(what, _ms(mine), _ms(driver), "the bare SQL of it", mine / driver)


def _bare_read(statements: list[tuple[str, Any]]) -> Callable[[Connection], None]:
    def bare(connection: Connection) -> None:
        cursor = connection.connection.cursor()
        for said, values in statements:
            cursor.execute(said, values)
            assert len(cursor.fetchall()) in (PAGE, 1)
        cursor.close()

    return bare


def _bare(connection: Connection, wanted: JobFilter, order: Order) -> list[tuple[str, Any]]:
    """The statements and their values, as the driver takes them."""
    counts = [count_query(wanted)] if wanted == JobFilter() else []
    return [_as_driven(connection, one) for one in (page_query(wanted, order, 0, PAGE), *counts)]


def _as_driven(connection: Connection, statement: Select[Any]) -> tuple[str, Any]:
    made = statement.compile(
        dialect=connection.dialect, compile_kwargs={"render_postcompile": True}
    )
    if connection.dialect.positional:
        return str(made), tuple(made.params[key] for key in made.positiontup or ())
    return str(made), made.params


def _timed(database: Database, work: Callable[[Connection], None]) -> Callable[[], float]:
    def run() -> float:
        start = time.perf_counter()
        database.read_here(work)
        return time.perf_counter() - start

    return run


def _fill(connection: Connection) -> None:
    dice = random.Random(1)
    rows = [_row(number, dice) for number in range(MANY)]
    connection.execute(insert(jobs), rows)
    config = [{"job_id": row["id"], "kind": "config", "text": "x" * 2000} for row in rows]
    connection.execute(insert(documents), config)
    connection.execute(insert(tags), [{"job_id": row["id"], "tag": "nlp"} for row in rows[::3]])


def _row(number: int, dice: random.Random) -> dict[str, Any]:
    user, cluster = f"user{dice.randrange(USERS)}", dice.choice(("default", "vc1", "vc2"))
    name = f"train-model-{dice.randrange(1_000_000)}-{number}"
    state = dice.choice(STATES)
    began = NOW + number * 1000
    over = state not in ("RUNNING", "WAITING")
    return {
        "id": f"{number:036d}",
        "engine": "another",  # so that nobody looks for them in the server's own
        "namespace": "default",
        "engine_name": f"j{number}",
        "engine_uid": f"{number:036d}",
        "username": user,
        "name": name,
        "virtual_cluster": cluster,
        "submit_state": "accepted",
        "state": state,
        "message": "worker-0 exited with code 1: " + "x" * 150,
        "submitted_at": began,
        "completed_at": began + dice.randrange(10**8) if over else None,
        "search": searched(user, name, cluster),
    }


@contextmanager
def _postgresql() -> Iterator[str | None]:
    if why := why_no_postgresql():
        print(f"PostgreSQL is not measured: {why}")
        yield None
        return
    server = PostgreSQL()
    try:
        yield server.start().new_database()
    finally:
        server.remove()


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms"
