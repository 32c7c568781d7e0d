"""The store: durable, versioned, one writer, and rows that come back as they went in."""

from __future__ import annotations

import sqlite3
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from regatta.api.errors import BrokenDatabase, DiskFull, NewerDatabase
from regatta.api.job import (
    CleanPodPolicy,
    Job,
    JobSpec,
    JobStatus,
    Metadata,
    Mode,
    Phase,
    RoleSpec,
    RunPolicy,
)
from regatta.controller.plan import Event, NewEnvironment, NewPod
from regatta.controller.world import Exit, PodPhase
from regatta.engines.local.store.database import Store
from regatta.engines.local.store.records import Context, Reservation
from regatta.engines.local.store.writes import EVENTS_PER_JOB, Transaction

NOW = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path / "regatta.db")
    yield store
    store.close()


def a_stored_job(uid: str = "u1", name: str = "demo", **policy: int) -> Job:
    template = {"spec": {"containers": [{"name": "main", "command": ["true"]}]}}
    spec = JobSpec(
        mode=Mode.SINGLE,
        clean_pod_policy=CleanPodPolicy.NEVER,
        worker=RoleSpec(replicas=1, template=template),
        run_policy=RunPolicy(**policy),
    )
    return Job(metadata=Metadata(name=name, uid=uid, labels={"a": "b"}), spec=spec)


def add(store: Store, job: Job) -> None:
    with store.write() as tx:
        tx.add_job(job, Context(directory="/work", shell={"PATH": "/bin"}), b"{}", NOW)


def a_pod(name: str = "demo-worker-0", index: int = 0) -> NewPod:
    manifest = {"metadata": {"name": name}, "spec": {}}
    return NewPod(
        name=name,
        role="worker",
        index=index,
        attempt=1,
        revision=2,
        by_name=False,
        manifest=manifest,
    )


def test_a_job_comes_back_as_it_went_in(store: Store) -> None:
    job = a_stored_job(backoff_limit=3)
    add(store, job)
    record = store.read.job_named("default", "demo")
    assert record is not None
    assert record.job == job
    assert record.context.shell == {"PATH": "/bin"}
    with store.write() as tx:
        status = JobStatus(phase=Phase.RUNNING, shape={"worker": 1}, start_time=NOW)
        tx.set_status(job, status)
    again = store.read.job("u1")
    assert again is not None
    assert again.job.status == status


def test_what_is_committed_survives_a_new_store(tmp_path: Path) -> None:
    first = Store(tmp_path / "db")
    add(first, a_stored_job())
    version = first.feed.version
    first.close()
    second = Store(tmp_path / "db")
    assert [record.uid for record in second.read.jobs()] == ["u1"]
    assert second.feed.version == version
    second.close()


def test_the_database_is_set_to_survive_a_power_cut(store: Store) -> None:
    connection = store._writer
    pragmas = {
        name: connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("journal_mode", "synchronous", "foreign_keys")
    }
    assert pragmas == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}


def test_a_block_that_raises_leaves_nothing(store: Store) -> None:
    with pytest.raises(sqlite3.IntegrityError), store.write() as tx:
        _add_twice(tx)
    assert store.read.jobs() == []


def _add_twice(tx: Transaction, name: str = "demo") -> None:
    tx.add_job(a_stored_job(f"{name}-1", name), Context(), b"{}", NOW)
    tx.add_job(a_stored_job(f"{name}-2", name), Context(), b"{}", NOW)


def test_a_part_that_raises_is_undone_alone(store: Store) -> None:
    with store.write() as tx:
        tx.add_job(a_stored_job(), Context(), b"{}", NOW)
        with pytest.raises(sqlite3.IntegrityError), tx.savepoint():
            _add_twice(tx, "other")
    assert [record.uid for record in store.read.jobs()] == ["u1"]


def test_a_name_is_taken_until_its_job_is_superseded(store: Store) -> None:
    add(store, a_stored_job("u1"))
    with pytest.raises(sqlite3.IntegrityError):
        add(store, a_stored_job("u2"))
    with store.write() as tx:
        tx.supersede("u1", by="u2")
    add(store, a_stored_job("u2"))
    assert [record.uid for record in store.read.jobs()] == ["u2"]
    assert store.read.replaced("default", "demo") == ["u1"]
    old = store.read.job("u1")
    assert old is not None
    assert old.superseded


def test_a_pods_life_is_written_step_by_step(store: Store) -> None:
    add(store, a_stored_job())
    with store.write() as tx:
        tx.add_pod("u1", "p1", a_pod(), NOW)
        pod = tx.pod("p1")
        assert pod is not None
        assert (pod.phase, pod.alive, pod.over) == (PodPhase.PENDING, False, False)
        tx.bind(pod, "127.64.0.1", 10040, ("0", "2"))
        tx.intend_start("p1")
    pod = store.read.pod("p1")
    assert pod is not None
    assert (pod.run, pod.ports, pod.gpus, pod.alive) == (1, (10040, 10059), ("0", "2"), True)
    with store.write() as tx:
        tx.set_started("p1", PodPhase.RUNNING, NOW, 0)
        tx.intend_stop("p1")
        tx.set_exit(pod, Exit(code=143, reason="Stopped", message="bye"), NOW, restarts=2)
    pod = store.read.pod("p1")
    assert pod is not None
    assert (pod.exit_code, pod.restarts, pod.finished_at) == (143, 2, NOW)
    assert (pod.stopping, pod.gone, pod.alive) == (True, False, False)


def test_an_end_is_written_once(store: Store) -> None:
    add(store, a_stored_job())
    with store.write() as tx:
        tx.add_pod("u1", "p1", a_pod(), NOW)
        pod = tx.pod("p1")
        assert pod is not None
        tx.set_exit(pod, Exit(code=0), NOW)
        tx.set_exit(pod, Exit(code=9), NOW)
    ended = store.read.pod("p1")
    assert ended is not None
    assert (ended.exit_code, ended.phase) == (0, PodPhase.SUCCEEDED)


def test_a_deleted_pod_leaves_the_brains_sight_only_when_it_has_ended(store: Store) -> None:
    add(store, a_stored_job())
    with store.write() as tx:
        tx.add_pod("u1", "p1", a_pod(), NOW)
        tx.intend_start("p1")
        tx.intend_delete("p1")
    (pod,) = store.read.pods("u1")
    assert (pod.deleting, pod.stopping, pod.gone) == (True, True, False)
    with store.write() as tx:
        tx.set_exit(pod, Exit(code=143), NOW)
    assert store.read.pods("u1") == []
    assert [record.exit_code for record in store.read.all_pods("u1")] == [143]


def test_a_deleted_pods_name_is_free_once_it_is_gone(store: Store) -> None:
    add(store, a_stored_job())
    with store.write() as tx:
        tx.add_pod("u1", "p1", a_pod(), NOW)
    with pytest.raises(sqlite3.IntegrityError), store.write() as tx:
        tx.add_pod("u1", "p2", a_pod(), NOW)
    with store.write() as tx:
        pod = tx.pod("p1")
        assert pod is not None
        tx.set_exit(pod, Exit(code=0), NOW)
        tx.intend_delete("p1")
        tx.add_pod("u1", "p2", a_pod(), NOW)
    assert [pod.uid for pod in store.read.pods("u1")] == ["p2"]


def test_removing_a_job_takes_everything_of_it_along(store: Store) -> None:
    add(store, a_stored_job())
    with store.write() as tx:
        tx.add_pod("u1", "p1", a_pod(), NOW)
        tx.add_environment(
            "u1", NewEnvironment(name="demo-env-1", revision=1, data={"A": "1"}, manifest={})
        )
        tx.add_event("u1", Event(type="Normal", reason="R", message="m"), NOW)
        tx.set_reservation("u1", Reservation(1, 2, 3))
    assert store.read.environment("u1", 1) == ("demo-env-1", {"A": "1"})
    assert store.read.reservation("u1") == Reservation(1, 2, 3)
    with store.write() as tx:
        tx.remove_job("u1")
    left = {
        table: store._writer.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        for table in ("jobs", "pods", "environments", "events", "reservations")
    }
    assert left == dict.fromkeys(left, 0)


def test_events_of_a_job_that_restarts_for_days_are_bounded(store: Store) -> None:
    add(store, a_stored_job())
    with store.write() as tx:
        for number in range(EVENTS_PER_JOB + 50):
            tx.add_event("u1", Event(type="Normal", reason="R", message=str(number)), NOW)
        tx.trim_events("u1")
    events = store.read.events("default", "demo")
    assert len(events) == EVENTS_PER_JOB
    assert events[-1].message == str(EVENTS_PER_JOB + 49)


def test_of_too_many_events_the_newest_are_shown_and_none_is_left_out_on_reading_on(
    store: Store,
) -> None:
    add(store, a_stored_job())
    with store.write() as tx:
        for number in range(5):
            tx.add_event("u1", Event(type="Normal", reason="R", message=str(number)), NOW)
    newest = store.read.events(None, None, limit=3)
    assert [event.message for event in newest] == ["2", "3", "4"]
    first = newest[0].id - 2
    assert [e.message for e in store.read.events(None, None, first, limit=3)] == ["1", "2", "3"]


def test_events_can_be_read_on_from_where_one_was(store: Store) -> None:
    add(store, a_stored_job())
    with store.write() as tx:
        for number in range(3):
            tx.add_event("u1", Event(type="Normal", reason="R", message=str(number)), NOW)
    first = store.read.events(None, None)[0]
    assert [event.message for event in store.read.events(None, None, first.id)] == ["1", "2"]
    assert (first.at, first.job, first.namespace) == (NOW, "demo", "default")


def test_the_version_rises_with_changes_and_only_with_them(store: Store) -> None:
    before = store.feed.version
    add(store, a_stored_job())
    after = store.feed.version
    assert after > before
    with store.write() as tx:
        tx.set_counter("awake", 12.5)
        tx.set_waiting("u1", "")
    assert store.feed.version == after
    assert store.read.counter("awake") == 12.5


def test_a_waiter_is_woken_by_a_change_of_another_thread(store: Store) -> None:
    version = store.feed.version
    thread = threading.Thread(target=add, args=(store, a_stored_job()))
    thread.start()
    assert store.feed.wait(version, 30) > version
    thread.join()


def test_a_waiter_gives_up_when_nothing_changes(store: Store) -> None:
    assert store.feed.wait(store.feed.version, 0.01) == store.feed.version


def test_readers_never_wait_for_the_writer(store: Store) -> None:
    add(store, a_stored_job())
    with store.write() as tx:
        tx.set_waiting("u1", "for Godot")
        record = store.read.job("u1")
        assert record is not None
        assert record.waiting == ""


def test_a_readers_connection_ends_with_its_thread(store: Store) -> None:
    for _ in range(5):
        thread = threading.Thread(target=lambda: store.read.jobs())
        thread.start()
        thread.join()
        del thread
    assert sum(closer.alive for closer in store._readers) <= 1


def test_only_finished_jobs_with_a_time_to_live_have_a_timer(store: Store) -> None:
    for uid, policy in (("u1", {"ttl_seconds_after_finished": 5}), ("u2", {})):
        job = a_stored_job(uid, uid, **policy)
        add(store, job)
        with store.write() as tx:
            tx.set_status(job, JobStatus(phase=Phase.COMPLETED))
    assert store.read.finished_with_timer() == ["u1"]
    assert store.read.unfinished() == []


def test_a_newer_database_is_refused_with_what_to_do(tmp_path: Path) -> None:
    Store(tmp_path / "db").close()
    connection = sqlite3.connect(tmp_path / "db")
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(NewerDatabase, match=r"format 99.*newer release"):
        Store(tmp_path / "db")


def test_a_file_that_is_no_database_is_refused_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "regatta.db"
    path.write_bytes(b"this is not a database, but it is long enough to be looked at" * 20)

    with pytest.raises(BrokenDatabase, match="Restore it from a backup, or move it away"):
        Store(path)


def test_the_first_error_is_told_where_sqlite_has_ended_the_transaction_itself(
    store: Store,
) -> None:
    def fail() -> None:
        with store.write() as tx, tx.savepoint():
            store._writer.execute("ROLLBACK")  # as SQLite does on a full disk
            raise sqlite3.OperationalError("out of luck")

    with pytest.raises(sqlite3.OperationalError, match="out of luck"):
        fail()
    add(store, a_stored_job("u2", "next"))
    assert store.read.job("u2") is not None


def test_a_full_database_is_told_with_its_folder_and_what_helps(
    store: Store, tmp_path: Path
) -> None:
    (pages,) = store._writer.execute("PRAGMA page_count").fetchone()
    store._writer.execute(f"PRAGMA max_page_count = {pages}")

    def add_many() -> None:
        for number in range(1000):
            add(store, a_stored_job(f"u{number}", f"job-{number}"))

    with pytest.raises(DiskFull, match=f"holds {tmp_path} is full.*regatta delete"):
        add_many()
    store._writer.execute("PRAGMA max_page_count = 100000")
    add(store, a_stored_job("after", "after"))
