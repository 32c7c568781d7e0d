"""Runs stay on record when their name is another's, and when their time to live is over."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from regatta.api.errors import JobNotFound
from regatta.api.job import Phase
from regatta.engines.base import LogQuery
from regatta.engines.blocking import Blocking
from regatta.engines.local import deleting
from regatta.engines.local.home import Home
from regatta.engines.local.replicas.removing import remove_tree
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


def run_through(engine: Blocking, name: str, script: str = "true") -> str:
    """The uid of a job that has completed."""
    uid = submit(engine, a_job(name, script)).uid
    wait_for(engine, name, Phase.COMPLETED)
    wait_until_quiet(engine, name)
    return uid


def test_every_run_of_a_name_is_listed_and_its_log_is_read_by_uid(engine: Blocking) -> None:
    uids = [run_through(engine, "again", f"echo run {number}") for number in range(8)]
    runs = engine.history("default", "again")
    assert [run.uid for run in runs] == uids[::-1]
    assert [run.current for run in runs] == [True] + [False] * 7
    assert [run.replaced_by for run in runs] == ["", *uids[:0:-1]]
    for number, uid in enumerate(uids):
        assert texts(engine.logs("default", "again", LogQuery(uid=uid))) == [f"run {number}"]
    assert all(event.reason for event in engine.events("default", "again", uid=uids[0]))


def test_a_uid_is_no_name(engine: Blocking) -> None:
    uid = run_through(engine, "job")
    with pytest.raises(JobNotFound):
        engine.get("default", uid)
    with pytest.raises(JobNotFound):
        engine.delete("default", uid)


def test_a_job_whose_time_to_live_is_over_leaves_its_record(engine: Blocking, home: Home) -> None:
    job = a_job("brief", "echo hello; exit 3", runPolicy={"ttlSecondsAfterFinished": 0})
    uid = submit(engine, job).uid
    eventually(lambda: not engine.list("default"), "the end of its time")
    (run,) = engine.history("default", "brief")
    assert (run.uid, run.phase, run.whole, run.current) == (uid, "Failed", False, False)
    assert run.message.startswith("brief-worker-0 exited with code 3")
    assert "ttlSecondsAfterFinished" in run.removed
    with pytest.raises(JobNotFound, match=r"only the record is left.*time to live"):
        list(engine.logs("default", "brief", LogQuery(uid=uid)))
    eventually(lambda: not home.job(uid).exists(), "its folder to be gone")


def test_deleting_a_job_leaves_no_record_of_any_run_of_its_name(
    engine: Blocking, home: Home
) -> None:
    submit(engine, a_job("job", "true", runPolicy={"ttlSecondsAfterFinished": 0}))
    eventually(lambda: not engine.list("default"), "the end of its time")
    uids = [run_through(engine, "job") for _ in range(2)]
    other = run_through(engine, "other")
    engine.delete("default", "job")
    assert [run.uid for run in engine.history()] == [other]
    eventually(lambda: not any(home.job(uid).exists() for uid in uids), "their folders to be gone")
    assert home.job(other).exists()


def test_records_alone_are_deleted_by_their_name(engine: Blocking) -> None:
    submit(engine, a_job("brief", "true", runPolicy={"ttlSecondsAfterFinished": 0}))
    eventually(lambda: not engine.list("default"), "the end of its time")
    assert engine.history("default", "brief")
    engine.delete("default", "brief")
    assert engine.history() == []
    with pytest.raises(JobNotFound):
        engine.delete("default", "brief")


def test_a_live_job_that_is_deleted_leaves_no_record(engine: Blocking) -> None:
    submit(engine, a_job("job", "exec sleep 600"))
    wait_for(engine, "job", Phase.RUNNING)
    engine.delete("default", "job")
    eventually(lambda: not engine.list("default"), "it to be gone")
    assert engine.history() == []


def test_many_are_deleted_in_batches_with_their_folders(
    engine: Blocking, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("regatta.engines.local.deleting.AT_ONCE", 2)
    uids = [run_through(engine, name) for name in ("a", "b", "c", "a")]
    submit(engine, a_job("live", "exec sleep 600"))
    wait_for(engine, "live", Phase.RUNNING)
    done = [engine.delete_many("default", live=True) for _ in range(2)]
    assert [(each.jobs, each.runs, each.left) for each in done] == [(1, 1, 2), (2, 0, 0)]
    assert [list(each.ending) for each in done] == [[], ["live"]]
    eventually(lambda: not engine.list("default"), "the live one to be gone")
    assert engine.history() == []
    eventually(lambda: not any(home.job(uid).exists() for uid in uids), "their folders to be gone")


def test_old_runs_go_while_the_job_of_their_name_stays(open_engine: OpenEngine, home: Home) -> None:
    engine = open_engine()
    old, new = run_through(engine, "job"), run_through(engine, "job")
    (kept, gone) = engine.history("default", "job")
    assert (kept.uid, gone.uid) == (new, old)
    assert kept.ended_at is not None
    done = engine.delete_many("default", ended_before=kept.ended_at)
    assert (done.jobs, done.runs, done.left) == (0, 1, 0)
    assert [run.uid for run in engine.history("default", "job")] == [new]
    assert engine.delete_many("default", ended_before=datetime.now(UTC) + timedelta(1)).jobs == 1


def test_servers_left_running_are_ended_before_their_finished_job_is_gone(
    engine: Blocking,
) -> None:
    spec = {"cleanPodPolicy": "Never", "withGloo": 0, "ps": a_role("exec sleep 600")}
    submit(engine, a_job("served", "true", **spec))
    wait_for(engine, "served", Phase.COMPLETED)
    done = engine.delete_many("default")
    assert (done.jobs, list(done.ending)) == (0, ["served"])
    eventually(lambda: not engine.list("default"), "it to be gone")
    assert engine.history() == []


def test_a_delete_that_was_cut_short_is_finished_by_the_next_engine(
    open_engine: OpenEngine, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = open_engine()
    for name in ("one", "two", "three"):
        run_through(first, name)
    removed: list[Path] = []

    def remove_one(folder: Path) -> OSError | None:
        if removed:
            raise RuntimeError("killed")
        removed.append(folder)
        return remove_tree(folder)

    monkeypatch.setattr(deleting, "remove_job", remove_one)
    with pytest.raises(RuntimeError, match="killed"):
        first.delete_many("default", live=False)
    first.close()
    second = open_engine()
    eventually(lambda: not second.list(None), "the end of all jobs")
    assert second.history() == []
    assert list((home.path / "jobs").iterdir()) == []
