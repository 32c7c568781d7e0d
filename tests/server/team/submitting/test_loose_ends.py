"""What was left half done is found on record and finished: with a real engine, on both
databases."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest
from sqlalchemy import Connection, update

from regatta.api.errors import JobNotFound, NoRecord, RecordsAway
from regatta.engines.local.engine import LocalEngine
from regatta.engines.local.home import Home
from regatta.server.records.job_rows import job_by_id, job_of
from regatta.server.records.job_tables import jobs
from regatta.server.records.job_writes import deletes_on_record, mark_deletes, mark_stop
from regatta.server.records.moments import now_millis
from regatta.server.records.submits import (
    abandon_submit,
    begin_submit,
    finish_submit,
    unfinished,
)
from regatta.server.records.team_database import Database
from regatta.server.team.deletes import Deleting
from regatta.server.team.submitting.loose_ends import LooseEnds
from regatta.server.team.submitting.turns import Turns
from tests.engines.local.jobs import a_job, a_submission
from tests.patience import Patience
from tests.server.records.conftest import (
    database,
    home,
    postgresql,
    pytest_collection_finish,
    url,
)
from tests.server.records.rows import a_new_job

__all__ = ["database", "home", "postgresql", "pytest_collection_finish", "url"]

Story = Callable[[LocalEngine, LooseEnds], Awaitable[None]]


def _play(database: Database, home: Home, story: Story) -> list[str]:
    """The ids of those of which nothing is left."""
    cleared: list[str] = []

    async def clear(job_id: str) -> None:
        cleared.append(job_id)

    async def main() -> None:
        engine = LocalEngine(home)
        deleting = Deleting(database, engine, "local", clear, now_millis)
        try:
            await story(engine, LooseEnds(database, engine, Turns(), clear, deleting))
        finally:
            await engine.close()

    asyncio.run(main())
    return cleared


def test_of_two_submits_of_one_name_each_is_the_job_that_its_key_made(
    database: Database, home: Home
) -> None:
    """The first was cut off before the engine had it; the second took its name, and was cut off
    after. By the name alone the job would be the first one's."""

    async def story(engine: LocalEngine, loose_ends: LooseEnds) -> None:
        first, second = (
            a_new_job(id=name, submitted_at=now_millis()) for name in ("first", "second")
        )
        await database.run(begin_submit, first)
        await database.run(begin_submit, second, "first")
        accepted = await engine.submit(*a_submission(a_job("train", "sleep 60"), key="second"))
        await loose_ends.settle_all()
        row = await database.read(job_of, "ann", "train")
        assert (row.id, row.engine_uid) == ("second", accepted.job.uid)

    assert _play(database, home, story) == ["first"]
    assert database.read_here(unfinished) == []


def test_a_name_goes_back_past_a_submit_that_made_no_job(database: Database) -> None:
    """The last of three was refused: the name is not the one's in between, which is gone as
    well."""
    for name, former in (("one", None), ("two", "one"), ("three", "two")):
        database.run_here(begin_submit, a_new_job(id=name), former)
    assert database.run_here(abandon_submit, "two")
    assert database.read_here(job_of, "ann", "train").id == "three"
    assert database.run_here(abandon_submit, "three")
    assert database.read_here(job_of, "ann", "train").id == "one"


def test_a_stop_that_was_written_and_not_carried_out_is_carried_out(
    database: Database, home: Home
) -> None:
    async def story(engine: LocalEngine, loose_ends: LooseEnds) -> None:
        for name in ("to-stop", "to-run"):
            await database.run(begin_submit, a_new_job(name))
            submission, shell = a_submission(a_job(name, "sleep 60"), key=f"id-ann-{name}")
            accepted = await engine.submit(submission, shell)
            await database.run(finish_submit, f"id-ann-{name}", accepted.job)
        await database.run(mark_stop, "id-ann-to-stop")
        await loose_ends.settle_all()
        stopped = {job.name: job.spec.run_policy.abort for job in await engine.list()}
        assert stopped == {"to-stop": True, "to-run": False}
        await loose_ends.settle_all()  # once more is no different

    assert _play(database, home, story) == []


def test_a_delete_that_was_cut_off_is_carried_out(database: Database, home: Home) -> None:
    """Before the engine heard of it, and after. Nobody else's job of that name goes with it."""

    async def story(engine: LocalEngine, loose_ends: LooseEnds) -> None:
        for name in ("before", "after", "another"):
            await database.run(begin_submit, a_new_job(name))
            submission, shell = a_submission(a_job(name, "sleep 60"), key=f"id-ann-{name}")
            accepted = await engine.submit(submission, shell)
            await database.run(finish_submit, f"id-ann-{name}", accepted.job)
            await database.run(mark_deletes, [f"id-ann-{name}"], now_millis())
        for name in ("after", "another"):
            await engine.delete("default", name)
            await _is_gone(engine, name)
        await engine.submit(*a_submission(a_job("another", "sleep 60"), key="somebody's"))

        await loose_ends.settle_all()

        await _is_gone(engine, "before")
        assert [job.name for job in await engine.list()] == ["another"]
        assert await database.read(deletes_on_record) == []
        for name in ("before", "after", "another"):
            with pytest.raises(NoRecord):
                await database.read(job_of, "ann", name)

    ids = {"id-ann-before", "id-ann-after", "id-ann-another"}
    assert set(_play(database, home, story)) == ids


def test_what_is_left_while_the_database_is_away_is_finished_when_it_is_back(
    database: Database, home: Home
) -> None:
    class Flaky:
        """Away for the first question."""

        def __init__(self) -> None:
            self.asked = 0

        async def read(self, *question: object) -> object:
            self.asked += 1
            if self.asked == 1:
                raise RecordsAway("away")
            return await database.read(*question)  # type: ignore[arg-type]

        async def run(self, *deed: object) -> object:
            return await database.run(*deed)  # type: ignore[arg-type]

    async def story(engine: LocalEngine, _: LooseEnds) -> None:
        async def clear(job_id: str) -> None:
            done.set()

        done = asyncio.Event()
        flaky = Flaky()
        deleting = Deleting(database, engine, "local", clear, now_millis)
        loose_ends = LooseEnds(flaky, engine, Turns(), clear, deleting)  # type: ignore[arg-type]
        await database.run(begin_submit, a_new_job())
        tying = asyncio.create_task(loose_ends.tie_up())
        loose_ends.left()
        await asyncio.wait_for(done.wait(), 60)
        tying.cancel()
        with suppress(asyncio.CancelledError):
            await tying
        assert flaky.asked > 1

    _play(database, home, story)
    assert database.read_here(unfinished) == []


def test_one_that_another_finished_meanwhile_is_left_as_it_is(
    database: Database, home: Home
) -> None:
    async def story(engine: LocalEngine, loose_ends: LooseEnds) -> None:
        await database.run(begin_submit, a_new_job())
        [submit] = await database.read(unfinished)
        await database.run(_accept, submit.id)
        await loose_ends.settle(submit)
        assert (await database.read(job_by_id, submit.id)).engine_uid == "uid-of-another"

    assert _play(database, home, story) == []


async def _is_gone(engine: LocalEngine, name: str) -> None:
    patience = Patience(60.0)
    with suppress(JobNotFound):
        while True:
            await engine.get("default", name)
            assert not patience.over, f"{name} is there still"
            await asyncio.sleep(0.02)


def _accept(connection: Connection, job_id: str) -> None:
    values = {"submit_state": "accepted", "engine_uid": "uid-of-another"}
    connection.execute(update(jobs).where(jobs.c.id == job_id).values(**values))
