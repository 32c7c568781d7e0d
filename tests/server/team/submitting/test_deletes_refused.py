"""Deletes that an engine refuses, or that meet something else: what is deleted leaves no record,
and what is not deleted has one. Over a real engine, that refuses when a test says so."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from regatta.api.errors import (
    ClusterRefused,
    ClusterUnreachable,
    DatabaseLocked,
    NoRecord,
    RecordsFull,
    RegattaError,
)
from regatta.api.job import Job
from regatta.engines.inventory import Removal, RunView
from regatta.engines.local.engine import LocalEngine
from regatta.engines.local.home import Home, open_home
from regatta.server.records.job_rows import job_of, runs_in
from regatta.server.records.job_writes import deletes_on_record, mark_deletes
from regatta.server.records.moments import now_millis
from regatta.server.records.submits import begin_submit, finish_submit, unfinished
from regatta.server.records.team_database import Database
from regatta.server.team.deletes import Deleting
from regatta.server.team.submitting.loose_ends import LooseEnds
from regatta.server.team.submitting.turns import Turns
from tests.engines.local.jobs import a_job, a_submission
from tests.server.records.rows import a_new_job


class Reluctant:
    """An engine that refuses to delete some, for now."""

    def __init__(self, engine: LocalEngine) -> None:
        self._engine = engine
        self.refuses: dict[str, RegattaError] = {}
        self.before_many: Callable[[], Awaitable[object]] | None = None
        self.after_many: RegattaError | None = None
        #: The uids of runs that its retention removed.
        self.forgot: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    async def history(self, namespace: str) -> list[RunView]:
        runs = await self._engine.history(namespace)
        return [run for run in runs if run.uid not in self.forgot]

    async def delete(self, namespace: str, name: str) -> None:
        if name in self.refuses:
            raise self.refuses[name]
        await self._engine.delete(namespace, name)

    async def delete_many(
        self, namespace: str, *, live: bool = False, ended_before: datetime | None = None
    ) -> Removal:
        if self.before_many is not None:
            await self.before_many()
        removal = await self._engine.delete_many(namespace, live=live, ended_before=ended_before)
        if self.after_many is not None:
            raise self.after_many
        return removal


class Scene:
    def __init__(self, database: Database, engine: LocalEngine) -> None:
        self.database, self.engine, self.cleared = database, Reluctant(engine), list[str]()
        self.accepted = dict[str, Job]()
        self.deleting = Deleting(database, self.engine, "local", self._clear, now_millis)
        self.loose_ends = LooseEnds(database, engine, Turns(), self._clear, self.deleting)

    async def _clear(self, job_id: str) -> None:
        if job_id not in self.cleared:  # asked again, it finds nothing
            self.cleared.append(job_id)

    async def hand_in(self, name: str, command: str = "sleep 60", *, again: str = "") -> None:
        """`again`: which run of that name, where it is not the first."""
        key = f"id-ann-{name}{again}"
        former = f"id-ann-{name}" if again else None
        new = a_new_job(name, id=key, submitted_at=now_millis())
        await self.database.run(begin_submit, new, former)
        submission, shell = a_submission(a_job(name, command), key=key)
        accepted = await self.engine.submit(submission, shell)
        await self.database.run(finish_submit, key, accepted.job)

    async def ends(self, name: str) -> None:
        while not (await self.engine.get("default", name)).finished:
            await asyncio.sleep(0.05)

    async def delete(self, name: str) -> None:
        await self.deleting.delete(await self.database.read(job_of, "ann", name))

    async def delete_finished(self) -> Removal:
        return await self.deleting.delete_many("default", live=False, ended_before=None)

    async def on_record(self) -> Mapping[str, str]:
        return await self.database.read(runs_in, "local", "default")

    async def asked(self) -> list[str]:
        return [row.name for row in await self.database.read(deletes_on_record)]


@pytest.fixture
def play(tmp_path: Path) -> Iterator[Callable[[Callable[[Scene], Awaitable[None]]], list[str]]]:
    database = Database(f"sqlite:///{tmp_path / 'team.db'}")
    home: Home = open_home(tmp_path / "home")

    def played(story: Callable[[Scene], Awaitable[None]]) -> list[str]:
        """The ids of those of which nothing is left."""

        async def main() -> list[str]:
            engine = LocalEngine(home)
            scene = Scene(database, engine)
            try:
                await story(scene)
            finally:
                await engine.delete_many("default", live=True)
                await engine.close()
            return scene.cleared

        return asyncio.run(main())

    yield played
    database.close()


Play = Callable[[Callable[[Scene], Awaitable[None]]], list[str]]


def test_one_that_the_engine_will_not_delete_keeps_no_other_one(
    play: Play, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)

    async def story(scene: Scene) -> None:
        for name in ("first", "second"):
            await scene.hand_in(name)
            await scene.database.run(mark_deletes, [f"id-ann-{name}"], now_millis())
        scene.engine.refuses = {"first": ClusterRefused("an admission rule says no")}
        await scene.loose_ends.settle_at_a_start()
        assert await scene.asked() == ["first"]
        left = [job.name for job in await scene.engine.list() if not job.deleting]
        assert left == ["first"]
        assert scene.cleared == ["id-ann-second"]
        # It was never told that it is refused.
        scene.engine.refuses = {}
        await scene.loose_ends.settle_all()
        assert await scene.asked() == []

    assert play(story) == ["id-ann-second", "id-ann-first"]
    assert "left half done still is: an admission rule says no" in caplog.text


def test_a_job_whose_submit_was_cut_off_is_deleted_and_not_only_its_record(play: Play) -> None:
    async def story(scene: Scene) -> None:
        await scene.database.run(begin_submit, a_new_job("first"))
        await scene.engine.submit(*a_submission(a_job("first", "sleep 60"), key="id-ann-first"))
        await scene.database.run(mark_deletes, ["id-ann-first"], now_millis())
        await scene.loose_ends.settle_all()
        assert [job.name for job in await scene.engine.list() if not job.deleting] == []

    assert play(story) == ["id-ann-first"]


def test_a_server_starts_while_its_engine_cannot_finish_a_delete(play: Play) -> None:
    async def story(scene: Scene) -> None:
        await scene.hand_in("first")
        await scene.database.run(mark_deletes, ["id-ann-first"], now_millis())
        scene.engine.refuses = {"first": ClusterUnreachable("away")}
        await scene.loose_ends.settle_at_a_start()
        assert await scene.asked() == ["first"]

        tying = asyncio.create_task(scene.loose_ends.tie_up())
        scene.engine.refuses = {}
        while await scene.asked():
            await asyncio.sleep(0.05)
        tying.cancel()

    assert play(story) == ["id-ann-first"]


def test_a_delete_that_was_refused_for_a_lock_is_not_carried_out_later(play: Play) -> None:
    """It was told so, and whoever asked may have thought better of it."""

    async def story(scene: Scene) -> None:
        await scene.hand_in("first")
        scene.engine.refuses = {"first": DatabaseLocked("held by a backup")}
        with pytest.raises(DatabaseLocked):
            await scene.delete("first")
        assert await scene.asked() == []

    assert play(story) == []


def test_a_full_database_keeps_nobody_from_making_room(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(scene: Scene) -> None:
        for name in ("first", "second"):
            await scene.hand_in(name, "true")
            await scene.ends(name)
        run = scene.database.make_room

        async def full_for_marks(deed: Any, *with_: Any) -> Any:
            if deed is mark_deletes:
                raise RecordsFull("its disk is full")
            return await run(deed, *with_)

        monkeypatch.setattr(scene.database, "make_room", full_for_marks)
        await scene.delete("first")
        assert (await scene.delete_finished()).jobs == 1
        assert await scene.engine.list() == []

    assert play(story) == ["id-ann-first", "id-ann-second"]


def test_what_a_full_database_could_not_forget_is_forgotten_when_it_can(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine made room, and another program took it."""
    full = True

    async def story(scene: Scene) -> None:
        nonlocal full
        for name in ("first", "second", "third"):
            await scene.hand_in(name, "true")
            await scene.ends(name)
        run = scene.database.make_room

        async def full_for_now(deed: Any, *with_: Any) -> Any:
            if full:
                raise RecordsFull("its disk is full")
            return await run(deed, *with_)

        monkeypatch.setattr(scene.database, "make_room", full_for_now)
        with pytest.raises(RecordsFull):
            await scene.delete("first")
        with pytest.raises(RecordsFull):
            await scene.delete_finished()
        assert await scene.engine.list() == []
        assert len(await scene.on_record()) == 3
        full = False
        await scene.loose_ends.settle_all()
        assert await scene.on_record() == {}

    assert sorted(play(story)) == ["id-ann-first", "id-ann-second", "id-ann-third"]


def test_a_full_database_on_another_machine_is_no_reason_to_delete(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(scene: Scene) -> None:
        await scene.hand_in("first", "true")
        await scene.ends("first")
        monkeypatch.setattr(type(scene.database.address), "is_sqlite", False)

        async def full(*_: Any) -> None:
            raise RecordsFull("its disk is full")

        with monkeypatch.context() as patched:
            patched.setattr(scene.database, "make_room", full)
            with pytest.raises(RecordsFull):
                await scene.delete("first")
        assert [job.name for job in await scene.engine.list()] == ["first"]

    assert play(story) == []


def test_deleting_many_leaves_what_somebody_asked_before_as_it_is(play: Play) -> None:
    async def story(scene: Scene) -> None:
        await scene.hand_in("lives")
        scene.engine.refuses = {"lives": ClusterUnreachable("away")}
        with pytest.raises(ClusterUnreachable):
            await scene.delete("lives")
        await scene.hand_in("over", "true")
        await scene.ends("over")
        await scene.delete_finished()
        assert await scene.asked() == ["lives"]

    assert play(story) == ["id-ann-over"]


def test_runs_that_the_engine_forgot_go_with_the_one_after_them(play: Play) -> None:
    async def story(scene: Scene) -> None:
        await scene.hand_in("run", "true")
        await scene.ends("run")
        await scene.hand_in("run", "true", again="-again")
        await scene.ends("run")
        scene.engine.forgot = {(await scene.engine.history("default"))[-1].uid}
        await scene.delete_finished()

    assert play(story) == ["id-ann-run", "id-ann-run-again"]


def test_what_is_handed_in_while_many_are_deleted_goes_with_its_record(play: Play) -> None:
    async def story(scene: Scene) -> None:
        await scene.hand_in("early")
        scene.engine.before_many = lambda: scene.hand_in("late")
        await scene.deleting.delete_many("default", live=True, ended_before=None)
        assert await scene.database.read(unfinished) == []
        for name in ("early", "late"):
            with pytest.raises(NoRecord):
                await scene.database.read(job_of, "ann", name)

    assert sorted(play(story)) == ["id-ann-early", "id-ann-late"]


def test_a_record_that_comes_after_its_job_was_deleted_goes_too(play: Play) -> None:
    async def story(scene: Scene) -> None:
        sweeps = scene.deleting.sweeps("default")
        for name in ("before", "after"):
            if name == "after":
                await scene.deleting.delete_many("default", live=True, ended_before=None)
            await scene.database.run(begin_submit, a_new_job(name))
            submission, shell = a_submission(a_job(name, "sleep 60"), key=f"id-ann-{name}")
            scene.accepted[name] = (await scene.engine.submit(submission, shell)).job
        await scene.engine.delete("default", "before")
        for name in ("before", "after"):
            await scene.database.run(finish_submit, f"id-ann-{name}", scene.accepted[name])
            row = await scene.database.read(job_of, "ann", name)
            await scene.deleting.look_after(row, sweeps)
        with pytest.raises(NoRecord):
            await scene.database.read(job_of, "ann", "before")
        assert (await scene.database.read(job_of, "ann", "after")).name == "after"

    assert play(story) == ["id-ann-before"]


def test_the_record_of_a_run_that_goes_by_itself_meanwhile_stays(play: Play) -> None:
    async def story(scene: Scene) -> None:
        await scene.hand_in("recent", "true")
        await scene.ends("recent")

        async def goes() -> None:
            await scene.engine.delete("default", "recent")

        scene.engine.before_many = goes
        long_ago = datetime(2000, 1, 1, tzinfo=UTC)
        await scene.deleting.delete_many("default", live=False, ended_before=long_ago)
        assert (await scene.database.read(job_of, "ann", "recent")).name == "recent"

    assert play(story) == []


def test_one_that_ends_while_many_are_deleted_goes_with_its_record(play: Play) -> None:
    async def story(scene: Scene) -> None:
        await scene.hand_in("early", "true")
        await scene.ends("early")
        await scene.hand_in("late")
        await scene.hand_in("lives")

        async def end_the_late() -> None:
            await scene.engine.stop("default", "late")
            await scene.ends("late")

        scene.engine.before_many = end_the_late
        assert (await scene.delete_finished()).jobs == 2
        assert [job.name for job in await scene.engine.list()] == ["lives"]
        assert (await scene.database.read(job_of, "ann", "lives")).name == "lives"
        assert await scene.asked() == []

    assert sorted(play(story)) == ["id-ann-early", "id-ann-late"]


def test_of_many_of_which_one_was_refused_the_others_leave_no_record(play: Play) -> None:
    async def story(scene: Scene) -> None:
        await scene.hand_in("gone", "true")
        await scene.ends("gone")
        await scene.hand_in("lives")
        scene.engine.after_many = ClusterRefused("one of them may not go")
        with pytest.raises(ClusterRefused):
            await scene.delete_finished()
        assert (await scene.database.read(job_of, "ann", "lives")).name == "lives"
        assert await scene.asked() == []
        assert scene.deleting.underway == set()

    assert play(story) == ["id-ann-gone"]


def test_what_somebody_deletes_at_this_moment_is_no_loose_end(play: Play) -> None:
    async def story(scene: Scene) -> None:
        await scene.hand_in("first", "true")
        await scene.ends("first")

        async def look() -> None:
            assert await scene.asked() == ["first"]
            await scene.loose_ends.settle_all()
            assert scene.cleared == []

        scene.engine.before_many = look
        await scene.delete_finished()

    assert play(story) == ["id-ann-first"]
