"""The state folder stays within its bounds: real runs, real folders, an engine that tidies up."""

from __future__ import annotations

import itertools
import os
from datetime import timedelta
from pathlib import Path

import pytest

from regatta.api.job import Phase
from regatta.controller import retention
from regatta.controller.plan import Instant
from regatta.controller.retention import Retention
from regatta.engines.base import LogQuery, Remark
from regatta.engines.blocking import Blocking
from regatta.engines.local import housekeeping, loop
from regatta.engines.local.clock import SystemClock
from regatta.engines.local.home import Home
from regatta.engines.local.store.database import Store
from regatta.engines.local.store.disk_full import RoomAhead
from tests.engines.local.jobs import (
    a_job,
    a_role,
    eventually,
    submit,
    texts,
    wait_for,
    wait_until_quiet,
)
from tests.engines.local.opening import OpenEngine
from tests.engines.local.store.test_database import a_stored_job
from tests.engines.local.store.test_runs import NOW, add_finished
from tests.engines.local.test_engine_history import run_through

UNBOUNDED = {"age": None, "runs": None, "size": None}
MIB = 1024 * 1024
#: About a MiB of log.
TALKS = "head -c 1000000 /dev/zero | tr '\\0' 'x' | fold -w 1000; true"


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(housekeeping, "SOON", 0.1)


def keeping(open_engine: OpenEngine, **bounds: object) -> Blocking:
    return open_engine(retention=Retention(**{**UNBOUNDED, **bounds}))  # type: ignore[arg-type]


def uids(engine: Blocking) -> list[str]:
    return [run.uid for run in engine.history()]


def test_of_too_many_runs_the_oldest_go_with_their_folders_and_it_is_told(
    open_engine: OpenEngine, home: Home
) -> None:
    engine = keeping(open_engine, runs=2)
    made = [run_through(engine, name) for name in ("a", "b", "b", "c", "d")]
    eventually(lambda: uids(engine) == made[:2:-1], "the oldest to be gone")
    eventually(
        lambda: sorted(os.listdir(home.path / "jobs")) == sorted(made[3:]), "their folders to go"
    )
    assert [job.name for job in engine.list("default")] == ["c", "d"]
    told = [event for event in engine.events("default", None) if event.reason == "RunsRemoved"]
    assert all("more than 2 runs had ended (retention.runs)" in event.message for event in told)
    assert "default/a" in told[0].message
    assert told[0].job == ""


def test_a_run_that_ended_long_ago_goes(
    open_engine: OpenEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "SOONEST", 0.1)
    engine = keeping(open_engine, age=0.5)
    submit(engine, a_job("brief"))  # which may have grown old before it is seen to have ended
    (told,) = eventually(
        lambda: [event for event in engine.events(None, None) if event.reason == "RunsRemoved"],
        "it to grow old",
    )
    assert "(retention.age)" in told.message
    assert engine.list("default") == []
    assert engine.history() == []


class HeldClock(SystemClock):
    """Goes on only when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self._seconds = self._ahead = 0.0

    def set_ahead(self, seconds: float) -> None:
        self._ahead += seconds

    def go_on(self, seconds: float) -> None:
        self._seconds += seconds

    def now(self) -> Instant:
        wall = NOW + timedelta(seconds=self._ahead + self._seconds)
        return Instant(wall, self._seconds)

    def monotonic(self) -> float:
        return self._seconds


def test_a_run_goes_when_it_is_too_old_though_nothing_else_ends(tmp_path: Path) -> None:
    clock, store = HeldClock(), Store(tmp_path / "regatta.db")
    with store.write() as tx:
        add_finished(tx, a_stored_job("u1", "brief"))
    keeper = housekeeping.Housekeeping(Home(tmp_path), store, Retention(age=20.0), clock)

    def until_looked() -> None:
        clock.go_on(keeper.due - clock.monotonic())
        keeper.step()

    until_looked()  # it is measured
    until_looked()
    assert store.read.run("u1") is not None
    assert keeper.due == pytest.approx(20.0)
    until_looked()
    until_looked()
    assert store.read.run("u1") is None
    assert clock.monotonic() == pytest.approx(21.0)
    store.close()


def test_a_clock_that_is_set_ahead_removes_nothing_for_a_day(tmp_path: Path) -> None:
    """By how much nobody watched is known across servers, too."""
    clock, store = HeldClock(), Store(tmp_path / "regatta.db")
    with store.write() as tx:
        add_finished(tx, a_stored_job("u1", "brief"))
    bounds = Retention(age=90 * retention.DAY)

    def tidied_for(seconds: float) -> bool:
        keeper = housekeeping.Housekeeping(Home(tmp_path), store, bounds, clock)
        until = clock.monotonic() + seconds
        while keeper.due < until:
            clock.go_on(keeper.due - clock.monotonic())
            keeper.step()
        return store.read.run("u1") is None

    def told() -> list[str]:
        return [event.message for event in store.read.events(None, None, 0)]

    assert not tidied_for(3600)
    clock.set_ahead(100 * retention.DAY)
    assert not tidied_for(3600)
    clock.set_ahead(-100 * retention.DAY)  # it was a mistake
    assert not tidied_for(2 * retention.DAY)
    clock.set_ahead(100 * retention.DAY)  # it was not
    assert not tidied_for(retention.DAY - 3600)
    assert tidied_for(7200)
    first, second, last = told()
    assert first == (
        "the clock is 100 days ahead of when the server last looked at it: if it is wrong, set it "
        "right. For 1 day of the server's time no run is removed for its age (retention.age)"
    )
    assert second == first
    assert last.startswith("removed 1 run with record and logs (default/brief): ended more than 90")
    store.close()


def test_of_too_large_logs_the_oldest_go_and_the_jobs_stay(
    open_engine: OpenEngine, home: Home
) -> None:
    engine = keeping(open_engine, size=3 * MIB)
    made = [run_through(engine, name, TALKS) for name in ("a", "a", "b", "c", "d")]
    eventually(lambda: engine.history("default", "b")[0].removed, "logs to be removed")
    assert uids(engine) == made[::-1]
    kept = [bool(run.log_bytes) for run in engine.history()]
    assert kept == [True, True, False, False, False]
    assert sum(run.log_bytes or 0 for run in engine.history()) <= 3 * MIB
    eventually(lambda: not home.job(made[0]).exists(), "the folder to be gone")
    assert home.job(made[4]).exists()
    assert [pod.exit_code for pod in engine.pods("default", "a")] == [0]
    (remark,) = engine.logs("default", "a", LogQuery())
    assert isinstance(remark, Remark)
    assert "its logs (" in remark.text
    assert "(retention.size)" in remark.text
    assert engine.events("default", "a")[-1].reason == "LogsRemoved"
    told = [event for event in engine.events("default", None) if not event.job]
    assert [event.reason for event in told] == ["LogsRemoved"]  # of what has its name no more
    assert told[0].message.startswith("removed the logs of 1 earlier run (default/a): those of ")
    assert len(texts(engine.logs("default", "d", LogQuery()))) == 1000


def test_what_still_runs_is_never_touched(open_engine: OpenEngine) -> None:
    engine = keeping(open_engine, runs=1, age=0.01, size=1)
    spec = {"cleanPodPolicy": "Never", "withGloo": 0, "ps": a_role(f"{TALKS}; exec sleep 600")}
    submit(engine, a_job("served", "true", **spec))
    submit(engine, a_job("live", f"{TALKS}; exec sleep 600"))
    wait_for(engine, "served", Phase.COMPLETED)
    wait_for(engine, "live", Phase.RUNNING)
    submit(engine, a_job("over", "true"))
    eventually(
        lambda: [job.name for job in engine.list("default")] == ["served", "live"],
        "only the other to go",
    )
    eventually(lambda: len(texts(engine.logs("default", "live", LogQuery()))) == 1000, "its log")
    engine.stop("default", "served")
    eventually(lambda: uids(engine) == uids(engine)[:1], "its servers to end, and it to go")


def test_an_engine_goes_on_with_what_another_left(open_engine: OpenEngine, home: Home) -> None:
    engine = keeping(open_engine)
    made = [run_through(engine, name) for name in ("a", "b", "c")]
    engine.close()
    (home.path.parent / "config.yaml").write_text("retention: {runs: 1}\n")
    engine = open_engine()
    eventually(lambda: uids(engine) == made[2:], "the file's word to hold")
    eventually(lambda: os.listdir(home.path / "jobs") == made[2:], "the folders to be gone")


def test_on_a_full_disk_the_bounds_hold_though_nothing_else_can_be_recorded(
    open_engine: OpenEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = keeping(open_engine)
    made = [run_through(engine, name) for name in ("a", "b")]
    submit(engine, a_job("live", "true", runPolicy={"suspend": True}))
    engine.close()
    writes = itertools.count()
    monkeypatch.setattr(RoomAhead, "is_left", lambda _: next(writes) == 0)  # it can be opened
    monkeypatch.setattr(loop, "RETRY", 0.05)
    engine = keeping(open_engine, runs=1)
    eventually(lambda: engine.traits().notices, "a word about the full disk")
    eventually(lambda: uids(engine)[1:] == made[1:], "the oldest to be gone")


def test_what_the_folder_holds_is_counted(open_engine: OpenEngine, home: Home) -> None:
    engine = keeping(open_engine, runs=7)
    run_through(engine, "over", TALKS)
    run_through(engine, "over", TALKS)
    submit(engine, a_job("brief", "true", runPolicy={"ttlSecondsAfterFinished": 0}))
    submit(engine, a_job("live", f"{TALKS}; exec sleep 600"))
    wait_for(engine, "live", Phase.RUNNING)
    wait_until_quiet(engine, "over")

    def counted() -> bool:
        found = engine.storage()
        return (
            (found.live, found.finished, found.runs) == (1, 1, 4)
            and found.ended_log_bytes * 0.9 < 2 * MIB
            and found.ended_log_bytes > 2_000_000
            and found.log_bytes - found.ended_log_bytes > 1_000_000
        )

    eventually(counted, "all to be counted")
    found = engine.storage()
    assert found.database_bytes >= Path(home.database).stat().st_size
    assert found.oldest == engine.history("default", "over")[1].ended_at
    assert found.retention == Retention(age=None, runs=7, size=None)


def test_of_a_live_job_the_logs_of_past_tries_go_but_for_the_last(
    open_engine: OpenEngine, home: Home
) -> None:
    engine = keeping(open_engine, size=10 * MIB)
    submit(engine, a_job("often", f"{TALKS}; exec sleep 600"))
    for _ in range(2):
        wait_for_lines(engine, "often")
        engine.suspend("default", "often")
        wait_for(engine, "often", Phase.SUSPENDED)
        engine.resume("default", "often")
    wait_for_lines(engine, "often")

    def told() -> list[str]:
        events = engine.events("default", "often")
        return [event.message for event in events if event.reason == "LogsRemoved"]

    (message,) = eventually(told, "logs to be removed")
    assert message.startswith("the logs of 1 past try (")
    assert message.endswith("took more than 1MiB (a tenth of retention.size)")
    pods = engine.pods("default", "often")
    kept = [home.pod(engine.get("default", "often").uid, pod.uid).exists() for pod in pods]
    assert kept == [False, True, True]
    assert len(texts(engine.logs("default", "often", LogQuery(previous=True)))) == 1000
    assert len(texts(engine.logs("default", "often", LogQuery()))) == 1000


def wait_for_lines(engine: Blocking, name: str) -> None:
    wait_for(engine, name, Phase.RUNNING)
    eventually(lambda: len(texts(engine.logs("default", name, LogQuery()))) == 1000, "its lines")
