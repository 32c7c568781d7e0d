"""Handing in: the row first, then the engine; and what is found by whoever starts after a death."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import func, select

from regatta.api.errors import NameTaken, NoRecord, RegattaError
from regatta.api.job import Job, JobSpec, Metadata, Mode
from regatta.engines.local.engine import LocalEngine
from regatta.engines.local.home import Home
from regatta.server.records.job_rows import document_of, job_of
from regatta.server.records.job_tables import documents
from regatta.server.records.job_writes import delete_record
from regatta.server.records.moments import now_millis
from regatta.server.records.submits import (
    abandon_submit,
    begin_submit,
    finish_submit,
    settle_unfinished,
    unfinished,
)
from regatta.server.records.team_database import Database
from tests.engines.local.jobs import a_job, a_submission
from tests.server.records.rows import NOW, a_new_job


def test_a_submit_that_began_is_on_record_and_unfinished(database: Database) -> None:
    job = a_new_job(documents={"config": "a: 1", "job": "{}"}, tags=("b", "a", "b"))
    database.run_here(begin_submit, job)
    row = database.read_here(job_of, "ann", "train")
    assert (row.submit_state, row.state, row.engine_uid) == ("accepting", "WAITING", None)
    assert row.tags == ("a", "b")
    assert database.read_here(document_of, row.id, "config") == "a: 1"
    assert [submit.id for submit in database.read_here(unfinished)] == [job.id]


def _finish(database: Database) -> None:
    job = Job(metadata=Metadata(name="train", uid="uid-1"), spec=JobSpec(mode=Mode.SINGLE))
    database.run_here(finish_submit, "id-ann-train", job)


TAKEN: dict[str, Callable[[Database], None]] = {
    "by a job on its way": lambda database: None,
    "by a job that runs": _finish,
}


@pytest.mark.parametrize("case", TAKEN)
def test_a_name_is_its_owners_until_the_record_is_deleted(database: Database, case: str) -> None:
    database.run_here(begin_submit, a_new_job())
    TAKEN[case](database)
    with pytest.raises(NameTaken, match=r"Job name train already exists: .* user ann's"):
        database.run_here(begin_submit, a_new_job(id="second"))
    database.run_here(begin_submit, a_new_job(username="bob"))
    database.run_here(begin_submit, a_new_job(name="Train"))
    database.run_here(delete_record, "id-ann-train", NOW)
    database.run_here(begin_submit, a_new_job(id="second"))
    assert database.read_here(job_of, "ann", "train").id == "second"


def test_of_many_that_want_a_name_at_once_one_has_it(database: Database) -> None:
    def attempt(number: int) -> bool:
        try:
            database.run_here(begin_submit, a_new_job(id=f"try-{number}"))
        except NameTaken:
            return False
        return True

    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(attempt, range(12))) == 1


def test_what_nobody_owns_may_share_a_name(database: Database) -> None:
    for number in range(2):
        database.run_here(begin_submit, a_new_job(id=f"{number}", username=""))


def test_a_submit_that_the_engine_refused_leaves_nothing(database: Database) -> None:
    database.run_here(begin_submit, a_new_job(documents={"config": "x"}))
    assert database.run_here(abandon_submit, "id-ann-train")
    with pytest.raises(NoRecord, match="'ann' has no job named 'train' on record"):
        database.read_here(job_of, "ann", "train")
    assert database.read_here(lambda c: c.scalar(select(func.count()).select_from(documents))) == 0
    database.run_here(begin_submit, a_new_job())


def test_a_submit_that_was_accepted_cannot_be_abandoned(database: Database) -> None:
    database.run_here(begin_submit, a_new_job())
    _finish(database)
    assert not database.run_here(abandon_submit, "id-ann-train")
    assert database.read_here(job_of, "ann", "train").submit_state == "accepted"
    assert database.read_here(unfinished) == []


#: Dies by SIGKILL at the point that its last argument names.
DIES = """
    import asyncio, os, signal, sys
    from pathlib import Path
    from regatta.engines.local.engine import LocalEngine
    from regatta.engines.local.home import open_home
    from regatta.server.records.submits import begin_submit, finish_submit
    from regatta.server.records.team_database import Database
    from tests.engines.local.jobs import a_job, a_submission
    from tests.server.records.rows import a_new_job
    from regatta.server.records.moments import now_millis

    url, home, point = sys.argv[1:]

    def die_at(here):
        if here == point:
            os.kill(os.getpid(), signal.SIGKILL)

    async def main():
        database, engine = Database(url), LocalEngine(open_home(Path(home)))
        job = a_new_job(submitted_at=now_millis())
        await database.run(begin_submit, job)
        die_at("before the engine was asked")
        submission, shell = a_submission(a_job("train", "exit 3"), key=job.id)
        accepted = await engine.submit(submission, shell)
        die_at("before it was written down")
        await database.run(finish_submit, job.id, accepted.job)
        die_at("at the end")

    asyncio.run(main())
"""


@pytest.mark.parametrize(
    ("point", "remains"),
    [
        ("before the engine was asked", False),
        ("before it was written down", True),
        ("at the end", True),
    ],
)
def test_a_server_that_was_killed_in_a_submit_agrees_with_its_engine_at_the_next_start(
    url: str, home: Home, point: str, remains: bool
) -> None:
    dead = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(DIES), url, str(home.path.parent), point],
        cwd=os.getcwd(),
        env={**os.environ, "PYTHONPATH": os.getcwd()},
        capture_output=True,
        text=True,
    )
    assert dead.returncode == -signal.SIGKILL, dead.stderr
    database = Database(url)

    async def start_again() -> list[str]:
        engine = LocalEngine(home)
        try:
            gone = await settle_unfinished(database, engine)
            assert await settle_unfinished(database, engine) == []
            if remains:
                row = await database.read(job_of, "ann", "train")
                assert row.engine_uid == (await engine.get("default", "train")).uid
                assert row.submit_state == "accepted"
        finally:
            await engine.close()
        return [submit.name for submit in gone]

    assert asyncio.run(start_again()) == ([] if remains else ["train"])
    assert database.read_here(unfinished) == []
    if not remains:
        database.run_here(begin_submit, a_new_job())
    database.close()


def test_a_job_of_that_name_that_was_there_before_is_not_what_was_submitted(
    database: Database, home: Home
) -> None:
    async def story() -> None:
        engine = LocalEngine(home)
        try:
            accepted = await engine.submit(*a_submission(a_job("train", "exit 0")))
            assert accepted.job.uid
            later = now_millis() + 3_600_000
            await database.run(begin_submit, a_new_job(submitted_at=later))
            assert len(await settle_unfinished(database, engine)) == 1
        finally:
            await engine.close()

    asyncio.run(story())


def test_an_engine_that_is_away_leaves_a_submit_unfinished(database: Database) -> None:
    class Away:
        async def history(self, *_: str) -> None:
            raise RegattaError("away")

    database.run_here(begin_submit, a_new_job())
    settle: Callable[..., object] = settle_unfinished
    with pytest.raises(RegattaError):
        asyncio.run(settle(database, Away()))  # type: ignore[arg-type]
    assert len(database.read_here(unfinished)) == 1
