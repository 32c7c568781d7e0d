"""An engine in which secrets would stay: it is asked to drop them before nobody knows of them."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from regatta.api.errors import ClusterUnreachable, NotAllowed
from regatta.api.job import Job, Phase
from regatta.engines.base import Engine
from regatta.server.records.recording import recorder
from regatta.server.records.submits import begin_submit, settle_unfinished, unfinished
from regatta.server.records.team_database import Database
from tests.server.records.recording.scripted import Scripted, a_job
from tests.server.records.recording.stories import Records, eventually, recording
from tests.server.records.rows import a_new_job


class Dropping(Scripted):
    """`refuses`: what dropping raises, while it is there."""

    def __init__(self, *jobs: Job) -> None:
        super().__init__(*jobs)
        self.refuses: Exception | None = None
        self.tries = 0
        self.dropped: list[str] = []

    async def drop_secrets(self, job: Job) -> None:
        self._drop(job.name)

    async def drop_secrets_of_submit(self, namespace: str, name: str, key: str) -> None:
        self._drop(f"{namespace}/{name} {key}")

    def _drop(self, what: str) -> None:
        self.tries += 1
        if self.refuses is not None:
            raise self.refuses
        self.dropped.append(what)

    @property
    def as_engine(self) -> Engine:
        return cast(Engine, self)


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "RETRY", 0.01)
    monkeypatch.setattr(recorder, "GATHER_SECONDS", 0.05)


def test_they_are_dropped_when_the_job_is_over_and_not_by_the_next_recorder(
    database: Database,
) -> None:
    async def story() -> None:
        engine, records = Dropping(a_job("ends"), a_job("runs")), Records(database)
        async with recording(engine.as_engine, database):
            await records.shows("ends", "RUNNING")
            assert engine.dropped == []
            engine.say(a_job("ends", Phase.COMPLETED))
            await records.shows("ends", "SUCCEEDED")
        assert engine.dropped == ["ends"]
        later = Dropping(a_job("ends", Phase.COMPLETED), a_job("new"))
        async with recording(later.as_engine, database):
            await records.shows("new", "RUNNING")
        assert later.dropped == []

    asyncio.run(story())


def test_a_cluster_that_is_away_is_asked_again_before_the_end_is_on_record(
    database: Database,
) -> None:
    async def story() -> None:
        engine, records = Dropping(a_job("one")), Records(database)
        async with recording(engine.as_engine, database):
            await records.shows("one", "RUNNING")
            engine.refuses = ClusterUnreachable("away")
            engine.say(a_job("one", Phase.COMPLETED))

            async def tried() -> bool:
                return engine.tries >= 3

            await eventually(tried, "three tries")
            await records.shows("one", "RUNNING")
            engine.refuses = None
            await records.shows("one", "SUCCEEDED")
        assert engine.dropped == ["one"]

    asyncio.run(story())


def test_a_refusal_is_told_and_keeps_nothing_off_the_record(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        engine, records = Dropping(), Records(database)
        engine.refuses = NotAllowed("may not delete secrets")
        async with recording(engine.as_engine, database):
            engine.say(a_job("one", Phase.FAILED))
            await records.shows("one", "FAILED")

    asyncio.run(story())
    assert "secrets of default/one stay until it is deleted: may not delete secrets" in caplog.text


def test_those_of_a_submit_that_made_no_job_are_dropped_before_it_is_forgotten(
    database: Database,
) -> None:
    engine = Dropping()
    database.run_here(begin_submit, a_new_job())
    (submit,) = database.read_here(unfinished)
    engine.refuses = ClusterUnreachable("away")
    with pytest.raises(ClusterUnreachable):
        asyncio.run(settle_unfinished(database, engine.as_engine))
    assert database.read_here(unfinished) == [submit]
    engine.refuses = None
    asyncio.run(settle_unfinished(database, engine.as_engine))
    assert database.read_here(unfinished) == []
    assert engine.dropped == [f"{submit.namespace}/{submit.engine_name} {submit.id}"]
