"""Runs on record: what older databases bring along, and reads that finished jobs do not slow."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from regatta.api.job import Job, JobStatus, Phase, encode
from regatta.controller.plan import Event
from regatta.engines.local.store.database import Store, _migrations
from regatta.engines.local.store.records import Context
from regatta.engines.local.store.writes import LONGEST_MESSAGE, Transaction
from tests.engines.local.store.test_database import a_pod, a_stored_job

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(tmp_path / "regatta.db")
    yield store
    store.close()


def ended(number: int, phase: Phase = Phase.COMPLETED) -> JobStatus:
    at = NOW + timedelta(seconds=number)
    return JobStatus(phase=phase, mode="Single", start_time=at, completion_time=at, message="so")


def add_finished(tx: Transaction, job: Job, number: int = 0) -> None:
    tx.add_job(job, Context(), b"null", NOW)
    tx.add_pod(job.uid, f"pod-{job.uid}", a_pod(), NOW)
    tx.add_event(job.uid, Event(type="Normal", reason="Done", message="done"), NOW)
    tx._connection.execute("UPDATE pods SET finished_at = 'x' WHERE job_uid = ?", (job.uid,))
    tx.set_status(job, ended(number))


def test_a_database_of_an_earlier_release_has_its_runs_on_record(tmp_path: Path) -> None:
    path = tmp_path / "regatta.db"
    old = sqlite3.connect(path, isolation_level=None)
    for number, sql in enumerate(_migrations()[:2], start=1):
        old.executescript(f"BEGIN;\n{sql}\nPRAGMA user_version = {number};\nCOMMIT;")
    for queued, (uid, superseded, status) in enumerate(
        [("u1", 1, ended(5, Phase.FAILED)), ("u2", 0, ended(9)), ("u3", 0, JobStatus())]
    ):
        job = a_stored_job(uid, name="live" if uid == "u3" else "demo")
        policy = replace(job.spec.run_policy, ttl_seconds_after_finished=60)
        job = replace(job, spec=replace(job.spec, run_policy=policy))
        old.execute(
            "INSERT INTO jobs (uid, namespace, name, document, status, context, companions, "
            "superseded, finished, queued, version, created_at) "
            "VALUES (?, 'default', ?, ?, ?, x'7b7d', x'6e756c6c', ?, ?, ?, 1, ?)",
            (
                uid,
                job.name,
                encode(Job(metadata=job.metadata, spec=job.spec)),
                encode(status),
                superseded,
                uid != "u3",
                queued,
                NOW.isoformat(),
            ),
        )
    for uid in ("u1", "u2", "u2"):
        old.execute(
            "INSERT INTO events (job_uid, at, type, reason, message) "
            "VALUES (?, ?, 'Normal', 'R', '')",
            (uid, NOW.isoformat()),
        )
    old.execute("DELETE FROM events WHERE id = 3")
    old.close()

    store = Store(path)
    try:
        runs = {run.uid: run for run in store.read.runs()}
        assert list(runs) == ["u3", "u2", "u1"]
        assert (runs["u1"].phase, runs["u1"].current, runs["u1"].message) == ("Failed", False, "so")
        assert runs["u2"].ended_at == NOW + timedelta(seconds=9)
        assert runs["u3"].ended_at is None
        assert [job.uid for job in store.read.jobs(finished=1)] == ["u2", "u3"]
        assert set(store.read.finished_with_timer()) == {"u1", "u2"}
        with store.write() as tx:
            tx.add_event("u2", Event(type="Normal", reason="New", message=""), NOW)
        assert [event.id for event in store.read.events("default", "demo")] == [2, 4]
    finally:
        store.close()


def test_a_record_stays_small_whatever_a_job_says(store: Store) -> None:
    job = a_stored_job()
    with store.write() as tx:
        tx.add_job(job, Context(), b"null", NOW)
        tx.set_status(job, replace(ended(0, Phase.FAILED), message="x" * 100_000))
        tx.remove_job(job.uid)
    (run,) = store.read.runs()
    assert len(run.message) == LONGEST_MESSAGE
    assert not run.whole


def test_of_the_finished_those_that_ended_last_are_listed_in_order_of_submission(
    store: Store,
) -> None:
    with store.write() as tx:
        for number, end in enumerate([5, 1, 9, 3]):
            add_finished(tx, a_stored_job(f"u{number}", name=f"n{number}"), end)
        tx.add_job(a_stored_job("live", name="live"), Context(), b"null", NOW)
    assert [job.uid for job in store.read.jobs("default", 2)] == ["u0", "u2", "live"]
    assert [job.uid for job in store.read.jobs(None, 0)] == ["live"]
    assert store.read.jobs("elsewhere", 2) == []


def steps(store: Store, work: Callable[[], object]) -> int:
    """What SQLite does for it, in tens of its own instructions: rows that are read count, time
    does not."""
    counted = 0

    def count() -> int:
        nonlocal counted
        counted += 1
        return 0

    connections = [store._writer, store.read._connection]
    for connection in connections:
        connection.set_progress_handler(count, 10)
    try:
        work()
    finally:
        for connection in connections:
            connection.set_progress_handler(None, 0)
    return counted


def start(store: Store) -> None:
    """What is read before the first turn."""
    from regatta.engines.local.recovery import jobs_to_look_at

    jobs_to_look_at(store.read)


def submit(store: Store) -> None:
    job = a_stored_job("new", name="new")
    with store.write() as tx:
        tx.job_named("default", "new")
        tx.add_job(job, Context(), b"null", NOW)
        tx.places_of_live_pods()
        tx.keep_key("key", job, NOW)
        tx.add_event("new", Event(type="Normal", reason="S", message=""), NOW)
    with store.write() as tx:
        tx.remove_job("new")
        tx.remove_run("new")
        tx._connection.execute("DELETE FROM submissions")


WORK: dict[str, Callable[[Store], object]] = {
    "get lists jobs": lambda store: store.read.jobs("default", 50),
    "get lists jobs of all namespaces": lambda store: store.read.jobs(None, 50),
    "get shows one job": lambda store: store.read.job_named("default", "n1"),
    "a job is submitted": submit,
    "an engine starts": start,
    "history lists the newest runs": lambda store: store.read.runs("default", limit=50),
    "history lists the runs of a name": lambda store: store.read.runs("default", "n1"),
    "a run is found by its uid": lambda store: store.read.run("u1"),
    "events of one job": lambda store: store.read.events("default", "n1"),
}


@pytest.mark.parametrize("what", WORK)
def test_finished_jobs_do_not_make_it_dearer(store: Store, what: str) -> None:
    def grow(first: int, last: int) -> None:
        with store.write() as tx:
            for number in range(first, last):
                add_finished(tx, a_stored_job(f"u{number}", name=f"n{number}"), number)

    grow(0, 100)
    few = steps(store, lambda: WORK[what](store))
    grow(100, 2000)
    many = steps(store, lambda: WORK[what](store))
    assert many <= 1.3 * few + 5, f"{few} became {many}"
