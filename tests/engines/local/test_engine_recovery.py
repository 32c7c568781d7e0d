"""An engine that is gone at any instant, a supervisor that is killed, a machine that restarts."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from regatta.api.job import Job, JobStatus, Phase
from regatta.controller.plan import Instant, Plan
from regatta.controller.reconcile import reconcile
from regatta.controller.world import Children
from regatta.engines.blocking import Blocking
from regatta.engines.local import engine as local_engine
from regatta.engines.local import loop
from regatta.engines.local.apply import stop_pod
from regatta.engines.local.home import Home
from regatta.engines.local.replicas.keeper import Processes
from regatta.engines.local.replicas.runspec import CLAIM_FILE, port_hold
from regatta.engines.local.replicas.runtime import Runtime
from regatta.engines.local.store.database import Store
from regatta.engines.local.store.writes import Transaction
from tests.engines.local.jobs import (
    a_job,
    a_role,
    alive,
    eventually,
    pods_of,
    submit,
    wait_for,
    wait_until_quiet,
)
from tests.engines.local.opening import OpenEngine, supervisor_of, the_run_of


def reserved_port(home: Home, uid: str) -> int:
    store = Store(home.database)
    reserved = store.read.reservation(uid)
    store.close()
    assert reserved is not None
    return 10000 + 20 * reserved.first_block


@pytest.mark.parametrize("code", [0, 7])
def test_the_first_answer_knows_of_what_ended_while_no_engine_ran(
    open_engine: OpenEngine,
    home: Home,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    code: int,
) -> None:
    monkeypatch.setattr(local_engine, "FIRST_LOOK", 60.0)  # this machine may be busy
    first = open_engine()
    submit(first, a_job("brief", f"until [ -e {tmp_path}/go ]; do sleep 0.02; done; exit {code}"))
    wait_for(first, "brief", Phase.RUNNING)
    pid = pods_of(first, "brief")[0].pid
    supervisor = supervisor_of(the_run_of(home, first, "brief"))
    first.close()
    (tmp_path / "go").touch()
    eventually(lambda: not alive(pid) and not alive(supervisor), "the end")
    found = open_engine().get("default", "brief").status.phase
    assert found is (Phase.FAILED if code else Phase.COMPLETED)


def test_a_running_job_is_picked_up_by_the_next_engine(
    open_engine: OpenEngine, tmp_path: Path
) -> None:
    first = open_engine()
    submit(first, a_job("long", f"until [ -e {tmp_path}/go ]; do sleep 0.02; done; exit 0"))
    wait_for(first, "long", Phase.RUNNING)
    pid = pods_of(first, "long")[0].pid
    first.close()
    second = open_engine()
    assert pods_of(second, "long")[0].pid == pid
    (tmp_path / "go").touch()
    wait_for(second, "long", Phase.COMPLETED)
    assert len(pods_of(second, "long")) == 1


def test_an_exit_that_nobody_watched_is_not_lost(
    open_engine: OpenEngine, home: Home, tmp_path: Path
) -> None:
    first = open_engine()
    submit(first, a_job("alone", f"until [ -e {tmp_path}/go ]; do sleep 0.02; done; exit 9"))
    wait_for(first, "alone", Phase.RUNNING)
    folder = the_run_of(home, first, "alone")
    first.close()
    (tmp_path / "go").touch()
    runtime = Runtime()
    eventually(lambda: runtime.inspect(folder).phase == "Exited", "the replica's end")
    second = open_engine()
    job = wait_for(second, "alone", Phase.FAILED)
    assert job.status.failure is not None
    assert job.status.failure.exit_code == 9


def test_a_queued_job_starts_under_the_next_engine(open_engine: OpenEngine) -> None:
    first = open_engine(cpus=1)
    submit(first, a_job("blocker", "exec sleep 600", cpu=1))
    wait_for(first, "blocker", Phase.RUNNING)
    submit(first, a_job("queued", "true", cpu=1))
    first.close()
    second = open_engine(cpus=1)
    wait_for(second, "queued", Phase.PENDING)
    second.stop("default", "blocker")
    wait_for(second, "queued", Phase.COMPLETED)


def test_a_start_that_was_written_but_not_carried_out_happens_once(
    open_engine: OpenEngine, home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = open_engine()
    with monkeypatch.context() as patch:
        # As if it had been killed between the transaction and what comes after it.
        patch.setattr(Processes, "carry_out", lambda *arguments: None)
        submit(first, a_job("intent", f"echo ran >> {tmp_path}/count"))
        store = Store(home.database)
        eventually(
            lambda: any(pod.run for pod in store.read.pods_not_over()), "the written intention"
        )
        store.close()
        first.close()
    second = open_engine()
    wait_for(second, "intent", Phase.COMPLETED)
    assert (tmp_path / "count").read_text() == "ran\n"


def test_a_stop_that_was_written_but_not_signalled_is_signalled_by_the_next_engine(
    open_engine: OpenEngine, home: Home
) -> None:
    first = open_engine()
    job = a_job("servers", "true", cleanPodPolicy="Never", withGloo=0)
    job["spec"]["ps"] = a_role("exec sleep 600")
    submitted = submit(first, job)
    wait_for(first, "servers", Phase.COMPLETED)
    pid = eventually(lambda: pods_of(first, "servers", "ps")[0].pid, "the server's process")
    first.close()
    store = Store(home.database)
    with store.write() as tx:
        for pod in tx.pods(submitted.uid):
            stop_pod(tx, pod, submitted.metadata.creation_timestamp)
    store.close()
    second = open_engine()
    wait_until_quiet(second, "servers")
    assert pid is not None
    assert not alive(pid)


def test_a_killed_supervisor_is_reported_as_that_and_leaves_nothing_running(
    engine: Blocking, home: Home, tmp_path: Path
) -> None:
    submit(engine, a_job("orphan", f"setsid sleep 600 & echo $! > {tmp_path}/pid; exec sleep 600"))
    wait_for(engine, "orphan", Phase.RUNNING)
    child = int(eventually(lambda: _read(tmp_path / "pid"), "its child"))
    pod = pods_of(engine, "orphan")[0]
    os.kill(supervisor_of(the_run_of(home, engine, "orphan")), signal.SIGKILL)
    job = wait_for(engine, "orphan", Phase.FAILED)
    assert job.status.failure is not None
    assert (job.status.failure.exit_code, job.status.failure.reason) == (None, "SupervisorLost")
    assert pod.pid is not None
    assert not alive(pod.pid)
    assert not alive(child)


def test_a_lost_supervisor_counts_as_a_failure_within_the_backoff_limit(
    engine: Blocking, home: Home, tmp_path: Path
) -> None:
    script = f"[ -e {tmp_path}/first ] && exit 0; touch {tmp_path}/first; exec sleep 600"
    submit(engine, a_job("retried", script, runPolicy={"backoffLimit": 1}))
    wait_for(engine, "retried", Phase.RUNNING)
    eventually((tmp_path / "first").exists, "its first try")
    os.kill(supervisor_of(the_run_of(home, engine, "retried")), signal.SIGKILL)
    job = wait_for(engine, "retried", Phase.COMPLETED)
    assert job.status.restarts == 1


def test_a_reboot_fails_the_replicas_it_ended_and_says_so(
    open_engine: OpenEngine, home: Home
) -> None:
    first = open_engine()
    submit(first, a_job("rebooted", "exec sleep 600"))
    wait_for(first, "rebooted", Phase.RUNNING)
    folder = the_run_of(home, first, "rebooted")
    first.close()
    supervisor, _, _ = (folder / CLAIM_FILE).read_text().split()
    os.kill(int(supervisor), signal.SIGKILL)
    eventually(lambda: not alive(int(supervisor)), "the supervisor's end")
    claim = (folder / CLAIM_FILE).read_text().split()
    (folder / CLAIM_FILE).write_text(" ".join([*claim[:2], "another-boot"]))
    second = open_engine()
    job = wait_for(second, "rebooted", Phase.FAILED)
    assert job.status.failure is not None
    assert job.status.failure.reason == "MachineRestarted"


def test_the_time_in_which_no_engine_watched_does_not_count_against_a_deadline(
    open_engine: OpenEngine, home: Home, tmp_path: Path
) -> None:
    first = open_engine()
    script = f"until [ -e {tmp_path}/go ]; do sleep 0.02; done"
    submit(first, a_job("timed", script, runPolicy={"activeDeadlineSeconds": 3600}))
    wait_for(first, "timed", Phase.RUNNING)
    first.close()
    with closing(Store(home.database)) as store, store.write() as tx:
        # As if all that was written down were two hours old.
        (job,) = tx.jobs()
        status = job.status
        assert status.started_awake is not None
        tx.set_status(job, replace(status, started_awake=status.started_awake - 7200))
        tx.set_counter("awake", tx.counter("awake") - 7200)
    second = open_engine()
    submit(second, a_job("after"))
    wait_for(second, "after", Phase.COMPLETED)  # so it has looked at the other as well
    (tmp_path / "go").touch()
    wait_for(second, "timed", Phase.COMPLETED)


def test_a_port_taken_by_somebody_else_is_a_free_restart_on_other_ports(
    open_engine: OpenEngine, home: Home, tmp_path: Path
) -> None:
    engine = open_engine(cpus=1)
    submit(engine, a_job("blocker", "exec sleep 600", cpu=1))
    wait_for(engine, "blocker", Phase.RUNNING)
    submit(engine, a_job("unlucky", f"echo $PADDLE_PORT > {tmp_path}/port", cpu=1))
    wait_for(engine, "unlucky", Phase.PENDING)
    base = reserved_port(home, engine.get("default", "unlucky").uid)
    with socket.socket(socket.AF_UNIX) as thief:
        thief.bind("\0" + port_hold(base).name)
        engine.stop("default", "blocker")
        job = wait_for(engine, "unlucky", Phase.COMPLETED)
    assert job.status.restarts == 0
    assert int((tmp_path / "port").read_text()) != base
    told = {event.reason: event.message for event in engine.events("default", "unlucky")}
    assert f"one of its ports {base} to {base + 19} is in use by another" in told["PortTaken"]


def test_what_a_deleted_job_left_behind_is_swept(open_engine: OpenEngine, home: Home) -> None:
    first = open_engine()
    job = submit(first, a_job("half-deleted", "exec sleep 600"))
    wait_for(first, "half-deleted", Phase.RUNNING)
    pid = pods_of(first, "half-deleted")[0].pid
    first.close()
    store = Store(home.database)
    with store.write() as tx:
        tx.remove_job(job.uid)
    store.close()
    open_engine()
    eventually(lambda: not home.job(job.uid).exists(), "its folder to be gone")
    assert pid is not None
    eventually(lambda: not alive(pid), "its process's end")


def test_a_replica_whose_folder_was_removed_is_ended_and_said_so(
    engine: Blocking, home: Home
) -> None:
    job = submit(engine, a_job("uprooted", "exec sleep 600"))
    wait_for(engine, "uprooted", Phase.RUNNING)
    pid = pods_of(engine, "uprooted")[0].pid
    shutil.rmtree(home.job(job.uid))

    ended = wait_for(engine, "uprooted", Phase.FAILED)

    assert pid is not None
    assert not alive(pid)
    assert "was removed while it ran" in ended.status.message


def test_jobs_whose_database_was_taken_away_are_ended_and_their_logs_put_aside(
    open_engine: OpenEngine, home: Home
) -> None:
    first = open_engine()
    job = submit(first, a_job("unknown", "echo words; exec sleep 600"))
    wait_for(first, "unknown", Phase.RUNNING)
    pid = pods_of(first, "unknown")[0].pid
    folder = home.job(job.uid)
    eventually(
        lambda: any(b"words" in log.read_bytes() for log in folder.glob("**/logs/*")),
        "its first line",
    )
    first.close()
    for file in home.path.glob("regatta.db*"):
        file.unlink()

    second = open_engine()
    assert second.list() == []

    assert pid is not None
    eventually(lambda: not alive(pid), "its process's end")
    assert not home.job(job.uid).exists()
    assert second.storage().aside_bytes > 0
    logs = (home.aside / job.uid).glob("**/logs/*")
    assert any(b"words" in log.read_bytes() for log in logs)


def test_events_go_on_rising_over_engines(
    open_engine: OpenEngine,
) -> None:
    first = open_engine()
    submit(first, a_job("one"))
    wait_for(first, "one", Phase.COMPLETED)
    last = first.events(None, None)[-1].id
    first.close()
    second = open_engine()
    submit(second, a_job("two"))
    assert second.events(None, None, after=last)[0].id > last


def test_one_jobs_trouble_does_not_stop_the_others(
    engine: Blocking, monkeypatch: pytest.MonkeyPatch
) -> None:
    def troubled(job: Job, children: Children, now: Instant) -> Plan:
        if job.name == "cursed":
            raise RuntimeError("a mistake of ours")
        return reconcile(job, children, now)

    monkeypatch.setattr(loop, "RETRY", 0.05)
    with monkeypatch.context() as patch:
        patch.setattr(loop, "reconcile", troubled)
        submit(engine, a_job("cursed"))
        submit(engine, a_job("blessed"))
        wait_for(engine, "blessed", Phase.COMPLETED)
        assert engine.get("default", "cursed").status.phase is None
    wait_for(engine, "cursed", Phase.COMPLETED)


def test_a_signal_that_could_not_be_sent_is_sent_later(
    engine: Blocking, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit(engine, a_job("full", "exec sleep 600"))
    wait_for(engine, "full", Phase.RUNNING)
    refused = []

    def disk_is_full(self: Runtime, folder: Path, grace_seconds: float) -> None:
        refused.append(folder)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(loop, "RETRY", 0.05)
    with monkeypatch.context() as patch:
        patch.setattr(Runtime, "stop", disk_is_full)
        engine.stop("default", "full")
        eventually(lambda: len(refused) > 1, "a second try")
    wait_for(engine, "full", Phase.ABORTED)


def test_a_turn_that_fails_is_made_up_for(
    engine: Blocking, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = []

    def broken(self: Transaction, job: Job, status: JobStatus) -> None:
        failed.append(job.name)
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(loop, "RETRY", 0.05)
    with monkeypatch.context() as patch:
        patch.setattr(Transaction, "set_status", broken)
        submit(engine, a_job("unwritten"))
        eventually(lambda: failed, "a turn that fails")
        assert engine.get("default", "unwritten").status.phase is None
    wait_for(engine, "unwritten", Phase.COMPLETED)


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
