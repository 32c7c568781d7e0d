"""Real jobs on the real local engine, and what the records tell of them: while they run, when they
are gone, and when nobody looked for a part of their lives."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from regatta.api.errors import JobNotFound
from regatta.api.job import Job
from regatta.engines.local.engine import LocalEngine
from regatta.engines.local.home import Home
from regatta.engines.local.scheduling.machine import Machine
from regatta.server.records.job_rows import (
    document_of,
    events_of,
    job_by_engine_uid,
    replicas_of,
)
from regatta.server.records.job_tables import gaps, jobs
from regatta.server.records.job_writes import delete_record, mark_stop
from regatta.server.records.moments import now_millis
from regatta.server.records.recording.event_writes import gaps_between
from regatta.server.records.submits import begin_submit, finish_submit
from regatta.server.records.team_database import Database
from tests.engines.local.jobs import a_job, a_submission
from tests.server.records.recording.stories import Records, eventually, recording, submit
from tests.server.records.rows import a_new_job

Play = Callable[[Callable[[LocalEngine, Records], Coroutine[Any, Any, None]]], None]


@pytest.fixture
def play(home: Home, database: Database) -> Play:
    """Runs a story with an engine of this machine and the records."""

    def run(story: Callable[[LocalEngine, Records], Coroutine[Any, Any, None]]) -> None:
        async def whole() -> None:
            engine = LocalEngine(home, machine=Machine(cpus=8, memory=8 << 30, gpus=(), pods=110))
            try:
                await story(engine, Records(database))
            finally:
                await engine.close()

        asyncio.run(whole())

    return run


async def _ends(engine: LocalEngine, name: str) -> Job:
    async def look() -> Job | None:
        job = await engine.get("default", name)
        pods = await engine.pods("default", name)
        quiet = all(pod.finished_at or not pod.current for pod in pods)
        return job if job.finished and quiet else None

    return await eventually(look, f"the end of {name}")


def test_a_job_that_nobody_announced_is_recorded_with_no_owner(
    play: Play, database: Database
) -> None:
    async def story(engine: LocalEngine, records: Records) -> None:
        async with recording(engine, database):
            job = await submit(engine, a_job("plain", "exit 0", replicas=2))
            row = await records.settles("plain", "SUCCEEDED")
        assert (row.username, row.id, row.engine_uid) == ("", job.uid, job.uid)
        assert (row.exit_code, row.total_tasks, row.total_roles) == (0, 2, 1)
        assert 0 < (row.created_at or 0) <= (row.launched_at or 0) <= (row.completed_at or 0)
        replicas = await records.replicas("plain")
        assert [(r.role, r.replica_index, r.exit_code) for r in replicas] == [
            ("worker", 0, 0),
            ("worker", 1, 0),
        ]
        assert all(
            r.address.startswith("127.") and r.first_port and r.finished_at for r in replicas
        )

    play(story)


def test_a_job_that_fails_after_restarts_tells_every_attempt_its_codes_and_reasons(
    play: Play, database: Database
) -> None:
    document = a_job("flaky", "echo so it ends >&2; exit 7", runPolicy={"backoffLimit": 1})

    async def story(engine: LocalEngine, records: Records) -> None:
        async with recording(engine, database):
            await submit(engine, document)
            row = await records.settles("flaky", "FAILED")
        assert (row.exit_code, row.trigger_role, row.trigger_index) == (7, "worker", 0)
        assert (row.retries, row.retries_user, row.attempt) == (1, 1, 1)
        assert "exited with code 7" in row.message
        first, second = await records.attempts("flaky")
        assert (first.outcome, first.blamed_role, first.exit_code) == ("Restarted", "worker", 7)
        assert "so it ends" in first.message
        assert (second.outcome, second.blamed_index, second.exit_code) == ("Failed", 0, 7)
        assert 0 < (first.started_at or 0) < (first.ended_at or 0) <= (second.ended_at or 0)
        assert [r.attempt for r in await records.replicas("flaky")] == [0, 1]

    play(story)


def test_what_was_written_outlives_the_job(play: Play, database: Database) -> None:
    async def story(engine: LocalEngine, records: Records) -> None:
        async with recording(engine, database):
            await submit(engine, a_job("brief", "exit 3"))
            before = await records.settles("brief", "FAILED")
            await engine.delete("default", "brief")

            async def gone() -> bool:
                row = await records.of("brief")
                return row is not None and row.gone_at is not None

            await eventually(gone, "the farewell")
        after = await records.of("brief")
        assert after is not None
        assert (after.state, after.exit_code, after.end_seen) == ("FAILED", 3, True)
        assert after.completed_at == before.completed_at
        assert [r.exit_code for r in await records.replicas("brief")] == [3]

    play(story)


def test_a_job_that_is_deleted_while_it_runs_was_stopped(play: Play, database: Database) -> None:
    async def story(engine: LocalEngine, records: Records) -> None:
        async with recording(engine, database):
            await submit(engine, a_job("torn", "sleep 600"))
            await records.shows("torn", "RUNNING")
            await engine.delete("default", "torn")
            row = await records.shows("torn", "STOPPED")
        assert (row.reason, row.exit_code, row.end_seen) == ("Deleted", -210, True)
        assert row.completed_at
        assert row.gone_at

    play(story)


def test_a_job_that_its_owner_submits_and_stops_stays_its_owners(
    play: Play, database: Database
) -> None:
    async def story(engine: LocalEngine, _: Records) -> None:
        records = Records(database, "ann")
        async with recording(engine, database):
            new = a_new_job("long", documents={"config": "mine"}, submitted_at=now_millis())
            await database.run(begin_submit, new)
            submission, shell = a_submission(a_job("long", "sleep 600"), key=new.id)
            accepted = await engine.submit(submission, shell)
            # The recorder may see it before this.
            await records.shows("long", "RUNNING")
            await database.run(finish_submit, new.id, accepted.job)
            await database.run(mark_stop, new.id)
            assert (await records.shows("long", "STOPPING")).execution_type == "STOP"
            await engine.stop("default", "long")
            row = await records.settles("long", "STOPPED")
        assert (row.id, row.username, row.exit_code) == (new.id, "ann", -210)
        assert await database.read(document_of, new.id, "config") == "mine"
        assert await Records(database).of("long") is None

    play(story)


def test_a_record_that_its_owner_deleted_does_not_come_back(play: Play, database: Database) -> None:
    async def story(engine: LocalEngine, records: Records) -> None:
        async with recording(engine, database):
            job = await submit(engine, a_job("unwanted", "sleep 600"))
            await records.shows("unwanted", "RUNNING")
            await database.run(delete_record, job.uid, now_millis())
            await engine.stop("default", "unwanted")

            async def over() -> bool:
                query = select(jobs.c.state).where(jobs.c.engine_uid == job.uid)
                return await database.read(lambda c: c.scalar(query)) == "STOPPED"

            await eventually(over, "the end of a job whose record was deleted")
        assert await records.of("unwanted") is None
        assert await database.read(events_of, job.uid) == []
        assert await database.read(replicas_of, job.uid) == []
        assert await database.read(lambda c: c.scalar(select(jobs.c.message))) == ""

    play(story)


def test_a_run_that_was_replaced_is_followed_to_its_end(play: Play, database: Database) -> None:
    async def story(engine: LocalEngine, records: Records) -> None:
        async with recording(engine, database):
            first = await submit(engine, a_job("again", "sleep 600"))
            await records.shows("again", "RUNNING")
            submission, shell = a_submission(a_job("again", "exit 0"), replace=True)
            second = (await engine.submit(submission, shell)).job

            async def both() -> bool:
                rows = [
                    await database.read(job_by_engine_uid, uid) for uid in (first.uid, second.uid)
                ]
                return [row and row.state for row in rows] == ["STOPPED", "SUCCEEDED"]

            await eventually(both, "both runs on record")

    play(story)


def test_events_are_kept_once_each(play: Play, database: Database) -> None:
    async def story(engine: LocalEngine, records: Records) -> None:
        async with recording(engine, database):
            job = await submit(engine, a_job("told", "exit 0"))
            await records.settles("told", "SUCCEEDED")
        told = await engine.events("default", "told")

        async def all_there() -> bool:
            return len(await database.read(events_of, job.uid)) >= len(told)

        for _ in range(2):  # a second recorder hears some of them again
            async with recording(engine, database):
                await eventually(all_there, "events on record")
        kept = await database.read(events_of, job.uid)
        assert [(e.engine_id, e.reason, e.message) for e in reversed(kept)] == [
            (e.id, e.reason, e.message) for e in told
        ]

    play(story)


# Nobody looked for a while


def test_what_happened_while_no_server_ran_is_caught_up_with_and_the_gap_is_told(
    play: Play, database: Database, tmp_path: Path
) -> None:
    """One ended, one came and ran through a restart."""
    go = tmp_path / "go"

    async def story(engine: LocalEngine, records: Records) -> None:
        began = now_millis()
        async with recording(engine, database):
            until_told = f"until [ -e {go} ]; do sleep 0.05; done"
            await submit(engine, a_job("ends", f"{until_told}; exit 5"))
            await records.shows("ends", "RUNNING")
        go.touch()
        await submit(engine, a_job("comes", "exit 4", runPolicy={"backoffLimit": 1}))
        await _ends(engine, "ends")
        await _ends(engine, "comes")
        async with recording(engine, database):
            ended = await records.settles("ends", "FAILED")
            came = await records.settles("comes", "FAILED")

            async def told() -> Any:
                return await database.read(gaps_between, began, now_millis())

            (gap,) = await eventually(told, "the gap on record")
        assert (ended.exit_code, ended.end_seen) == (5, True)
        assert (came.exit_code, came.attempt, came.retries) == (4, 1, 1)
        assert [a.exit_code for a in await records.attempts("comes")] == [4, 4]
        assert gap.why == "the server was not running"
        assert ended.completed_at is not None
        assert gap.from_at <= ended.completed_at <= gap.until_at

    play(story)


def test_a_job_that_was_deleted_while_no_server_ran_says_that_its_end_was_not_seen(
    play: Play, database: Database
) -> None:
    async def story(engine: LocalEngine, records: Records) -> None:
        async with recording(engine, database):
            await submit(engine, a_job("vanishes", "sleep 600"))
            await records.shows("vanishes", "RUNNING")
        await engine.delete("default", "vanishes")

        async def gone() -> bool:
            try:
                await engine.get("default", "vanishes")
            except JobNotFound:
                return True
            return False

        await eventually(gone, "the end of a job that was deleted")
        async with recording(engine, database):
            row = await records.shows("vanishes", "UNKNOWN")
        assert not row.end_seen
        assert "its end was not seen: it was Running at 20" in row.notes
        assert row.exit_code is None
        assert 0 < (row.completed_at or 0) <= (row.gone_at or 0)
        (replica,) = await records.replicas("vanishes")
        assert (replica.phase, replica.reason) == ("Unknown", "NotSeen")
        (attempt,) = await records.attempts("vanishes")
        assert attempt.outcome == "UNKNOWN"

    play(story)


def test_a_job_whose_time_to_live_was_over_while_no_server_ran_is_known_from_history(
    play: Play, database: Database
) -> None:
    async def story(engine: LocalEngine, records: Records) -> None:
        async with recording(engine, database):
            await submit(engine, a_job("kept", "exit 0"))
            await records.settles("kept", "SUCCEEDED")
        short = a_job("short", "exit 0", runPolicy={"ttlSecondsAfterFinished": 0})
        job = await submit(engine, short)

        async def gone() -> bool:
            runs = await engine.history("default", "short")
            return bool(runs) and not runs[0].current

        await eventually(gone, "the end of its time to live")
        async with recording(engine, database):
            row = await records.shows("short", "SUCCEEDED")
        assert row.engine_uid == job.uid
        assert row.exit_code == 0
        assert "came and went while nobody recorded" in row.notes

    play(story)


def test_an_engine_that_starts_anew_is_followed_again(
    home: Home, database: Database, tmp_path: Path
) -> None:
    """Its replicas ran on, and one ended, while no engine looked after them."""
    machine = Machine(cpus=8, memory=8 << 30, gpus=(), pods=110)
    go = tmp_path / "go"

    async def story() -> None:
        records = Records(database)
        first = LocalEngine(home, machine=machine)
        async with recording(first, database):
            await submit(
                first, a_job("outlives", f"until [ -e {go} ]; do sleep 0.05; done; exit 6")
            )
            await records.shows("outlives", "RUNNING")
        await first.close()
        go.touch()
        second = LocalEngine(home, machine=machine)
        try:
            async with recording(second, database):
                row = await records.settles("outlives", "FAILED")
            assert row.exit_code == 6
        finally:
            await second.close()

    asyncio.run(story())
    assert (
        database.read_here(lambda c: c.scalar(select(gaps.c.why))) == "the server was not running"
    )
