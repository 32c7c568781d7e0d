"""The engine while another program, such as one that makes a backup, holds its database locked."""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from regatta.api.errors import DatabaseLocked
from regatta.api.job import Phase
from regatta.engines.blocking import Blocking
from regatta.engines.local import housekeeping, loop
from regatta.engines.local.home import Home
from regatta.engines.local.store import database
from regatta.engines.local.store.database import Store
from tests.engines.local.jobs import a_job, eventually, submit, wait_for, wait_until_quiet
from tests.engines.local.opening import OpenEngine, engine, home, open_engine
from tests.engines.local.store.test_database import a_stored_job, add

__all__ = ["engine", "home", "open_engine"]


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "BUSY_TIMEOUT_MS", 50)
    monkeypatch.setattr(loop, "RETRY", 0.05)
    monkeypatch.setattr(housekeeping, "SOON", 600.0)  # it would find the lock, too, and say so


@contextmanager
def held(path: Path) -> Iterator[None]:
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    try:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")
    finally:
        other.close()


def told_of(path: Path) -> str:
    return rf"holds the job database {path} locked, so nothing can be written.*fuser -v {path}"


def test_what_changes_something_is_refused_with_what_to_do_and_what_looks_is_answered(
    engine: Blocking, home: Home
) -> None:
    submit(engine, a_job("runs", "exec sleep 600"))
    wait_for(engine, "runs", Phase.RUNNING)
    refused: list[Callable[[], object]] = [
        lambda: submit(engine, a_job("next", "true"), key="once"),
        lambda: engine.stop("default", "runs"),
        lambda: engine.scale("default", "runs", "worker", 2),
        lambda: engine.delete("default", "runs"),
    ]
    with held(home.database):
        for change in refused:
            with pytest.raises(DatabaseLocked, match=told_of(home.database)) as locked:
                change()
            assert (locked.value.code, locked.value.status) == ("DatabaseLocked", 503)
        with ThreadPoolExecutor(8) as others:
            names = [others.submit(engine.list, None) for _ in range(8)]
            assert {job.name for name in names for job in name.result()} == {"runs"}
    submit(engine, a_job("next", "true"), key="once")
    wait_for(engine, "next", Phase.COMPLETED)
    engine.stop("default", "runs")
    wait_for(engine, "runs", Phase.ABORTED)
    for name in ("next", "runs"):
        wait_until_quiet(engine, name)


def test_what_ends_meanwhile_is_recorded_once_it_lets_go_and_nobody_reads_a_traceback(
    engine: Blocking, home: Home, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    submit(engine, a_job("ends", f"while [ ! -e {tmp_path}/go ]; do sleep 0.02; done; exit 3"))
    wait_for(engine, "ends", Phase.RUNNING)
    with caplog.at_level(logging.WARNING), held(home.database):
        (tmp_path / "go").touch()
        eventually(lambda: engine.traits().notices, "a notice")
        assert "locked, so nothing can be written" in engine.traits().notices[0]
        assert engine.get("default", "ends").status.phase is Phase.RUNNING
    wait_for(engine, "ends", Phase.FAILED)
    (pod,) = engine.pods("default", "ends")
    assert pod.exit_code == 3
    eventually(lambda: not engine.traits().notices, "the end of the notice")
    wait_until_quiet(engine, "ends")
    assert not [record for record in caplog.records if record.exc_info]
    told = [record.getMessage() for record in caplog.records]
    assert len([message for message in told if "locked, so nothing" in message]) == 1


def test_an_engine_does_not_start_on_it_and_says_so(open_engine: OpenEngine, home: Home) -> None:
    Store(home.database).close()
    with held(home.database), pytest.raises(DatabaseLocked, match=told_of(home.database)):
        open_engine()
    assert open_engine().list(None) == []


def test_a_database_that_is_held_to_the_exclusion_of_readers_is_not_told_as_broken(
    tmp_path: Path,
) -> None:
    path = tmp_path / "regatta.db"
    Store(path).close()
    other = sqlite3.connect(path, isolation_level=None)
    try:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(DatabaseLocked, match=told_of(path)):
            Store(path)
    finally:
        other.close()
    Store(path).close()


WAITER = "waits-for-a-turn"


def test_those_who_waited_for_their_turn_are_told_with_the_one_who_found_it_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path / "regatta.db")
    clock, begin = time.monotonic, Store._begin
    asked: set[int] = set()
    found_out: list[Store] = []

    def monotonic() -> float:
        if threading.current_thread().name.startswith(WAITER):  # others live in this process, too
            asked.add(threading.get_ident())
        return clock()

    def find_out(store: Store) -> None:
        found_out.append(store)
        begin(store)

    def write(number: int) -> None:
        add(store, a_stored_job(f"u{number}", f"job-{number}"))

    monkeypatch.setattr(database.time, "monotonic", monotonic)
    monkeypatch.setattr(Store, "_begin", find_out)
    try:
        with held(tmp_path / "regatta.db"), ThreadPoolExecutor(8, WAITER) as people:
            with store._writing:  # it is somebody's turn
                told = [people.submit(write, number) for number in range(8)]
                eventually(lambda: len(asked) == 8, "all have asked")
            assert {type(each.exception(60)) for each in told} == {DatabaseLocked}
            assert len(found_out) == 1
        write(9)
        assert [record.uid for record in store.read.unfinished()] == ["u9"]
    finally:
        store.close()
