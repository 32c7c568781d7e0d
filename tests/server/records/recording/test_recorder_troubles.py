"""Streams that end, engines and databases that are away, and more jobs than one asks for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, cast

import pytest
from msgspec.structs import replace
from sqlalchemy import func, select

from regatta.api.errors import ServerUnreachable
from regatta.api.job import Job, Phase, Progress
from regatta.engines.base import Engine, Gone, Lost
from regatta.engines.inventory import RunView
from regatta.server.records.job_rows import events_of
from regatta.server.records.job_tables import gaps, jobs
from regatta.server.records.recording import recorder
from regatta.server.records.team_database import Database
from tests.server.records.postgresql import PostgreSQL
from tests.server.records.recording.scripted import BEGAN, Scripted, a_job, a_pod, an_event
from tests.server.records.recording.stories import Records, eventually, recording


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "RETRY", 0.01)
    monkeypatch.setattr(recorder, "GATHER_SECONDS", 0.05)
    monkeypatch.setattr(recorder, "HELD_SECONDS", 0.05)


def _engine(scripted: Scripted) -> Engine:
    return cast(Engine, scripted)


async def _gaps(database: Database) -> list[str]:
    return list(await database.read(lambda c: c.scalars(select(gaps.c.why)).all()))


async def _count(database: Database) -> int:
    return await database.read(lambda c: c.scalar(select(func.count()).select_from(jobs)) or 0)


def test_a_stream_that_tells_of_a_loss_leaves_a_gap_when_it_goes_on(database: Database) -> None:
    async def story() -> None:
        engine, records = Scripted(a_job("one")), Records(database)
        async with recording(_engine(engine), database):
            await records.shows("one", "RUNNING")
            engine.say(Lost("the cluster does not answer"))
            engine.say(a_job("one", Phase.COMPLETED))
            await records.shows("one", "SUCCEEDED")
            await eventually(lambda: _gaps(database), "the gap")
        assert await _gaps(database) == ["the engine was away: the cluster does not answer"]

    asyncio.run(story())


def test_a_stream_that_breaks_is_begun_again_and_what_went_meanwhile_is_found_out(
    database: Database,
) -> None:
    async def story() -> None:
        engine, records = Scripted(a_job("stays"), a_job("goes")), Records(database)
        async with recording(_engine(engine), database):
            await records.shows("stays", "RUNNING")
            await records.shows("goes", "RUNNING")
            del engine.jobs["uid-goes"]
            engine.jobs["uid-stays"] = a_job("stays", Phase.COMPLETED)
            engine.say(ServerUnreachable("it fell over"))
            await records.shows("stays", "SUCCEEDED")
            gone = await records.shows("goes", "UNKNOWN")
            await eventually(lambda: _gaps(database), "the gap")
        assert engine.asked["watch"] == 2
        assert "its end was not seen" in gone.notes
        assert await _gaps(database) == ["the engine does not answer: it fell over"]

    asyncio.run(story())


def test_a_job_that_ends_and_goes_in_one_moment_ended_as_it_was_told(database: Database) -> None:
    async def story() -> None:
        engine, records = Scripted(a_job("brief")), Records(database)
        async with recording(_engine(engine), database):
            await records.shows("brief", "RUNNING")
            engine.say(a_job("brief", Phase.FAILED, reason="Failed", message="exit 3"))
            del engine.jobs["uid-brief"]
            engine.say(Gone("default", "brief"))

            async def gone() -> bool:
                row = await records.of("brief")
                return row is not None and row.gone_at is not None

            await eventually(gone, "the farewell")
            row = await records.shows("brief", "FAILED")
        assert (row.message, row.end_seen) == ("exit 3", True)

    asyncio.run(story())


def test_replicas_whose_end_only_the_job_remembers_have_ended(database: Database) -> None:
    """Their pods were seen while they ran, and cleaned away when nobody looked."""
    ended = a_job("cleaned", Phase.FAILED)
    left = replace(
        a_pod(ended), uid="", current=False, phase="Failed", exit_code=3, finished_at=None
    )

    async def story() -> None:
        engine, records = Scripted(a_job("cleaned")), Records(database)
        async with recording(_engine(engine), database):
            await records.shows("cleaned", "RUNNING")
        engine.jobs["uid-cleaned"] = ended
        engine.pods_of["uid-cleaned"] = [replace(left, reason="Removed", message="no data")]
        async with recording(_engine(engine), database):
            await records.settles("cleaned", "FAILED")
        (replica,) = await records.replicas("cleaned")
        assert (replica.uid, replica.phase, replica.exit_code) == ("pod-cleaned-0", "Failed", 3)
        assert (replica.reason, replica.message) == ("Removed", "no data")

    asyncio.run(story())


def test_what_was_seen_of_a_replica_is_not_replaced_by_what_is_remembered(
    database: Database,
) -> None:
    ended = a_job("seen", Phase.FAILED)
    told = replace(a_pod(ended), phase="Failed", exit_code=3, reason="OOMKilled")

    async def story() -> None:
        engine, records = Scripted(ended), Records(database)
        engine.pods_of["uid-seen"] = [told]
        async with recording(_engine(engine), database):
            await records.settles("seen", "FAILED")
            engine.pods_of["uid-seen"] = [replace(told, uid="", reason="Removed", current=False)]
            engine.say(replace(ended, status=replace(ended.status, message="later")))

            async def written() -> bool:
                row = await records.of("seen")
                return row is not None and row.message == "later"

            await eventually(written, "the later word")
        (replica,) = await records.replicas("seen")
        assert (replica.exit_code, replica.reason) == (3, "OOMKilled")

    asyncio.run(story())


def test_a_replica_that_vanished_says_that_its_end_was_not_seen(database: Database) -> None:
    ended = a_job("lost", Phase.FAILED)

    async def story() -> None:
        engine, records = Scripted(a_job("lost")), Records(database)
        async with recording(_engine(engine), database):
            await records.shows("lost", "RUNNING")
            engine.pods_of["uid-lost"] = [
                replace(a_pod(a_job("lost")), current=False),
                replace(a_pod(ended), uid="other", index=1, phase="Failed", exit_code=1),
            ]
            engine.say(ended)
            await records.shows("lost", "FAILED")
        first, second = await records.replicas("lost")
        assert (first.phase, first.reason) == ("Unknown", "NotSeen")
        assert (second.phase, second.exit_code) == ("Failed", 1)

    asyncio.run(story())


def test_an_engine_that_is_away_when_the_server_starts_is_waited_for(database: Database) -> None:
    async def story() -> None:
        engine, records = Scripted(a_job("one")), Records(database)
        engine.trouble = ServerUnreachable("not yet")
        async with recording(_engine(engine), database):

            async def tried() -> bool:
                return engine.asked["watch"] >= 3

            await eventually(tried, "three tries")
            engine.trouble = None
            await records.shows("one", "RUNNING")

    asyncio.run(story())


def test_an_engine_whose_replicas_cannot_be_asked_for_is_asked_again(database: Database) -> None:
    async def story() -> None:
        engine, records = Scripted(), Records(database)
        async with recording(_engine(engine), database):

            async def watches() -> bool:
                return engine.asked["history"] > 0

            await eventually(watches, "the first look")
            engine.trouble = ServerUnreachable("busy")
            engine.say(a_job("one"))

            async def tried() -> bool:
                return engine.asked["pods"] >= 3

            await eventually(tried, "three tries")
            engine.trouble = None
            await records.shows("one", "RUNNING")
            assert len(await records.replicas("one")) == 1

    asyncio.run(story())


def test_a_database_that_is_away_is_waited_for_and_nothing_told_meanwhile_is_lost() -> None:
    server = PostgreSQL().start()
    database = Database(server.new_database())

    async def story() -> None:
        engine, records = Scripted(a_job("one"), a_job("two")), Records(database)
        async with recording(_engine(engine), database):
            await records.shows("one", "RUNNING")
            await records.shows("two", "RUNNING")
            server.stop(at_once=True)
            engine.say(a_job("one", Phase.COMPLETED), a_job("three"))
            del engine.jobs["uid-two"]
            engine.say(Gone("default", "two"))
            engine.happens(an_event(1, "one", "told while nobody wrote"))
            before = engine.asked["pods"]

            async def tried() -> bool:
                return engine.asked["pods"] >= before + 4

            await eventually(tried, "tries to write")
            server.start()
            await records.shows("one", "SUCCEEDED")
            await records.shows("two", "STOPPED")
            await records.shows("three", "RUNNING")

            async def told() -> Any:
                return await database.read(events_of, "uid-one")

            assert [event.message for event in await eventually(told, "the event")] == [
                "told while nobody wrote"
            ]
            (gap,) = await eventually(lambda: _gaps(database), "the gap")
            assert "does not answer" in gap

    try:
        asyncio.run(story())
    finally:
        database.close()
        server.remove()


def test_a_burst_of_changes_is_one_write(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        engine, records = Scripted(), Records(database)
        async with recording(_engine(engine), database):
            await eventually(_is_watched(engine), "somebody who hears them")
            for message in range(500):
                engine.say(*(a_job(f"j{n}", message=str(message)) for n in range(3)))
            engine.say(*(a_job(f"j{n}", Phase.COMPLETED) for n in range(3)))
            for number in range(3):
                await records.shows(f"j{number}", "SUCCEEDED")
        assert engine.asked["pods"] < 30

    asyncio.run(story())


def _is_watched(engine: Scripted) -> Callable[[], Awaitable[bool]]:
    async def look() -> bool:
        return engine.asked["history"] > 0

    return look


def test_steps_of_a_training_are_not_written(database: Database) -> None:
    async def story() -> None:
        engine, records = Scripted(a_job("one")), Records(database)
        async with recording(_engine(engine), database):
            await records.shows("one", "RUNNING")
            engine.say(a_job("before"))  # once it is on record, it is known that "one" was written
            await records.shows("before", "RUNNING")
            asked = engine.asked["pods"]
            engine.say(*(a_job("one", progress=Progress(step=step)) for step in range(50)))
            engine.say(a_job("two"))
            await records.shows("two", "RUNNING")
            assert engine.asked["pods"] == asked + 1

    asyncio.run(story())


def test_replicas_that_end_after_their_job_are_looked_at_until_they_have(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        ended = a_job("one", Phase.FAILED)
        engine, records = Scripted(ended), Records(database)
        engine.pods_of[ended.uid] = [
            a_pod(ended, phase="Running", exit_code=None, finished_at=None, stopping=True)
        ]
        async with recording(_engine(engine), database):
            await records.shows("one", "FAILED")
            engine.pods_of[ended.uid] = [a_pod(ended, phase="Failed", exit_code=143)]
            await records.settles("one", "FAILED")
        assert [replica.exit_code for replica in await records.replicas("one")] == [143]

    asyncio.run(story())


def test_thousands_of_jobs_that_have_settled_are_not_asked_for_at_the_next_start(
    database: Database,
) -> None:
    many = 1000

    async def story() -> None:
        finished = [a_job(f"j{number}", Phase.COMPLETED) for number in range(many)]
        first = Scripted(*finished)

        async def all_there() -> bool:
            return await _count(database) >= many

        async with recording(_engine(first), database):
            await eventually(all_there, "all jobs on record")
        assert first.asked["pods"] == many
        second, records = Scripted(*finished, a_job("new")), Records(database)
        async with recording(_engine(second), database):
            await records.shows("new", "RUNNING")
        assert second.asked["pods"] == 1
        # One whose settled state is on record, and which the engine has no more, costs no call.
        third = Scripted(*finished[1:], a_job("new"), a_job("newer"))
        async with recording(_engine(third), database):
            await records.shows("newer", "RUNNING")

            async def gone() -> bool:
                row = await records.of("j0")
                return row is not None and row.gone_at is not None

            await eventually(gone, "the farewell")
        assert third.asked["get"] == 0

    asyncio.run(story())


def test_an_event_waits_for_its_job_to_be_on_record(database: Database) -> None:
    async def story() -> None:
        engine, records = Scripted(), Records(database)
        engine.happens(an_event(1, "late", "early"), an_event(2, "never", "of nobody"))
        async with recording(_engine(engine), database):
            engine.happens(an_event(3, "late", "again"))
            engine.say(a_job("late"))
            await records.shows("late", "RUNNING")

            async def told() -> Any:
                kept = await database.read(events_of, "uid-late")
                return kept if len(kept) == 2 else None

            kept = await eventually(told, "both events")
        assert {event.message for event in kept} == {"early", "again"}

    asyncio.run(story())


def test_an_event_that_happened_again_is_one_with_a_count(database: Database) -> None:
    async def story() -> None:
        engine, records = Scripted(a_job("one")), Records(database)
        async with recording(_engine(engine), database):
            await records.shows("one", "RUNNING")
            engine.happens(an_event(5, "one", "no room"), an_event(6, "one", "other"))
            engine.happens(an_event(9, "one", "no room (x3)", minutes=4))

            async def told() -> Any:
                kept = await database.read(events_of, "uid-one")
                return kept if [event.engine_id for event in kept] == [9, 6] else None

            again, once = await eventually(told, "the events")
        assert (again.message, again.count, once.count) == ("no room", 3, 1)

    asyncio.run(story())


def test_an_event_belongs_to_the_job_that_had_the_name_at_that_time(database: Database) -> None:
    def reborn(job: Job) -> Job:
        later = BEGAN + timedelta(hours=1)
        return replace(
            job, metadata=replace(job.metadata, uid="uid-second", creation_timestamp=later)
        )

    async def story() -> None:
        engine, records = Scripted(a_job("one", Phase.COMPLETED)), Records(database)
        async with recording(_engine(engine), database):
            await records.shows("one", "SUCCEEDED")
            engine.say(reborn(a_job("one")))
            await records.shows("one", "RUNNING")
            engine.happens(an_event(1, "one", "before"), an_event(2, "one", "after", minutes=61))

            async def told() -> Any:
                both = [await database.read(events_of, uid) for uid in ("uid-one", "uid-second")]
                return both if all(both) else None

            first, second = await eventually(told, "both events")
        assert ([e.message for e in first], [e.message for e in second]) == (["before"], ["after"])

    asyncio.run(story())


def test_a_job_that_came_and_went_is_taken_from_history_once(database: Database) -> None:
    run = RunView(
        namespace="default",
        name="brief",
        uid="uid-brief",
        phase="Failed",
        reason="Failed",
        message="it exited with code 3",
        created_at=BEGAN,
        ended_at=BEGAN + timedelta(minutes=1),
        current=False,
    )

    async def story() -> None:
        for _ in range(2):
            engine, records = Scripted(), Records(database)
            engine.runs = [run]
            async with recording(_engine(engine), database):
                row = await records.shows("brief", "FAILED")
        assert (row.exit_code, row.message) == (256, "it exited with code 3")
        assert await _count(database) == 1

    asyncio.run(story())


@pytest.mark.parametrize("turns", range(6))
def test_whoever_ends_it_as_news_comes_is_heard(database: Database, turns: int) -> None:
    """At any turn of the loop after the news: a server that leaves waits for the recorder."""

    async def story() -> None:
        engine, records = Scripted(a_job("one")), Records(database)
        running = asyncio.create_task(recorder.Recorder(_engine(engine), database).run())
        await records.shows("one", "RUNNING")
        engine.say(a_job("two"))
        for _ in range(turns):
            await asyncio.sleep(0)
        running.cancel()
        await asyncio.wait({running}, timeout=20)
        assert running.cancelled()

    asyncio.run(story())
