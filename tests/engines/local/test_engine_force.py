"""Supervisors that do not do what they are asked to: the engine does it, and says so."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest

from regatta.api.job import Phase
from regatta.engines.blocking import Blocking
from regatta.engines.inventory import NOT_REMOVED
from regatta.engines.local import recovery, rubbish
from regatta.engines.local.home import Home
from regatta.engines.local.replicas import keeper
from regatta.engines.local.store.database import Store
from regatta.engines.local.supervisor import freezer, tree
from tests.engines.local.control_groups import ice
from tests.engines.local.jobs import (
    a_job,
    alive,
    eventually,
    pods_of,
    submit,
    wait_for,
    wait_until_quiet,
)
from tests.engines.local.opening import OpenEngine, supervisor_of, the_run_of

__all__ = ["ice"]

#: Once it may, halts its supervisor, and again whenever somebody has it go on.
HALTS = "trap '' TERM; until [ -e {go} ]; do sleep 0.01; done; while :; do kill -STOP $PPID; done"


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper, "HALTED_SECONDS", 0.0)


def is_halted(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def a_job_whose_supervisor_is_halted(engine: Blocking, home: Home) -> tuple[int, int]:
    """Its supervisor and its process."""
    go = home.path / "go"
    submit(engine, a_job("halted", HALTS.format(go=go)))
    wait_for(engine, "halted", Phase.RUNNING)
    go.touch()
    supervisor = supervisor_of(the_run_of(home, engine, "halted"))
    eventually(lambda: is_halted(supervisor), "a halted supervisor")
    pid = pods_of(engine, "halted")[0].pid
    assert pid is not None
    return supervisor, pid


def test_a_job_whose_program_halts_its_supervisor_can_be_stopped_and_says_how(
    engine: Blocking, home: Home, impatient: None
) -> None:
    supervisor, pid = a_job_whose_supervisor_is_halted(engine, home)
    engine.stop("default", "halted")
    wait_for(engine, "halted", Phase.ABORTED)
    [pod] = wait_until_quiet(engine, "halted")
    assert not alive(supervisor)
    assert not alive(pid)
    assert pod.reason == "EndedByForce"
    [told] = [e for e in engine.events("default", "halted") if e.reason == "EndedByForce"]
    assert told.type == "Warning"
    assert told.message == (
        f"{pod.name}: its supervisor (process {supervisor}) was halted (SIGSTOP, or frozen) and "
        "had not ended it when its grace period of 1 s was over; supervisor and processes were "
        "killed"
    )


def test_a_job_whose_program_halts_its_supervisor_can_be_deleted(
    engine: Blocking, home: Home, impatient: None
) -> None:
    supervisor, pid = a_job_whose_supervisor_is_halted(engine, home)
    engine.delete("default", "halted")
    eventually(lambda: not engine.list(), "the end of the job")
    assert not alive(supervisor)
    assert not alive(pid)


def test_a_supervisor_that_is_halted_is_ended_by_an_engine_that_came_after_the_stop(
    open_engine: OpenEngine, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = open_engine()
    supervisor, pid = a_job_whose_supervisor_is_halted(first, home)
    first.stop("default", "halted")
    first.close()
    monkeypatch.setattr(keeper, "HALTED_SECONDS", 0.0)
    second = open_engine()
    wait_for(second, "halted", Phase.ABORTED)
    wait_until_quiet(second, "halted")
    assert not alive(supervisor)
    assert not alive(pid)


def test_a_halted_supervisor_whose_folder_was_removed_too_is_ended_with_its_replica(
    engine: Blocking, home: Home, impatient: None
) -> None:
    supervisor, pid = a_job_whose_supervisor_is_halted(engine, home)
    shutil.rmtree(the_run_of(home, engine, "halted"))
    [pod] = wait_until_quiet(engine, "halted")
    assert "its folder in the state folder was removed" in pod.message
    assert not alive(supervisor)
    assert not alive(pid)


@pytest.mark.parametrize(
    ("late", "halted", "forced"),
    [
        pytest.param(4.9, True, False, id="one that is halted has a moment"),
        pytest.param(5.0, True, True, id="then it is killed"),
        pytest.param(29.9, False, False, id="one that may be at work has longer"),
        pytest.param(30.0, False, True, id="but not for ever"),
    ],
)
def test_how_late_a_supervisor_may_be(late: float, halted: bool, forced: bool) -> None:
    assert keeper.must_be_forced(late, halted) is forced


def test_a_supervisor_that_was_halted_once_goes_on_when_it_is_asked_to_end(
    engine: Blocking, home: Home, tmp_path: Path
) -> None:
    saved, ready = tmp_path / "saved", tmp_path / "ready"
    trap = f"trap 'touch {saved}; exit 0' TERM; touch {ready}"
    job = a_job("polite", f"{trap}; while :; do sleep 0.01; done")
    job["spec"]["worker"]["template"]["spec"]["terminationGracePeriodSeconds"] = 60  # busy machines
    submit(engine, job)
    wait_for(engine, "polite", Phase.RUNNING)
    eventually(ready.exists, "its trap")
    os.kill(supervisor_of(the_run_of(home, engine, "polite")), signal.SIGSTOP)
    engine.stop("default", "polite")
    wait_until_quiet(engine, "polite")
    assert saved.exists()


def test_a_halted_supervisor_of_a_job_that_no_row_knows_is_ended(
    open_engine: OpenEngine, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = open_engine()
    supervisor, pid = a_job_whose_supervisor_is_halted(first, home)
    uid = first.get("default", "halted").uid
    first.close()
    store = Store(home.database)
    with store.write() as tx:
        tx.remove_job(uid)
    store.close()
    monkeypatch.setattr(recovery, "PATIENCE", 0.1)
    open_engine()
    assert not alive(supervisor)
    assert not alive(pid)
    assert not home.job(uid).exists()


# -- processes that do not die --------------------------------------------------------------------


def a_job_with_a_frozen_child(engine: Blocking, ice: Path, tmp_path: Path) -> int:
    child = tmp_path / "child"
    freezes = f"echo $$$$ > {child}.new; mv {child}.new {child}; echo $$$$ > {ice}/cgroup.procs"
    submit(engine, a_job("frozen", f"sh -c '{freezes}; sleep 600' & exec sleep 600"))
    wait_for(engine, "frozen", Phase.RUNNING)
    eventually(child.exists, "its child")
    pid = int(child.read_text())
    eventually(lambda: freezer.frozen_in(pid), "its child to be frozen")
    return pid


def test_a_process_that_freezes_itself_does_not_outlive_its_job(
    engine: Blocking, ice: Path, tmp_path: Path
) -> None:
    pid = a_job_with_a_frozen_child(engine, ice, tmp_path)
    engine.delete("default", "frozen")
    eventually(lambda: not engine.list(), "the end of the job")
    assert not alive(pid)


def test_a_job_of_which_a_process_does_not_die_says_so_and_is_deleted_when_it_does(
    engine: Blocking, home: Home, ice: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid = a_job_with_a_frozen_child(engine, ice, tmp_path)
    words = f"process {pid} (sh) has not died of SIGKILL: it is frozen by control group {ice}"
    with monkeypatch.context() as patch:
        # The engine meets one whom it cannot let go, as those that wait for a dead disk.
        patch.setattr(freezer, "release", lambda pid: None)
        patch.setattr(tree, "UNKILLABLE_SECONDS", 0.2)
        patch.setattr(rubbish, "LATER", 0.1)
        os.kill(supervisor_of(the_run_of(home, engine, "frozen")), signal.SIGKILL)
        wait_for(engine, "frozen", Phase.FAILED)
        told = {event.reason: event.message for event in engine.events("default", "frozen")}
        assert told["NotEnded"] == f"frozen-worker-0: {words}"
        engine.delete("default", "frozen")
        status = eventually(lambda: stuck(engine), "what keeps the job")
        assert status == f"{words}. It is tried again; the job is gone soon after."
        assert alive(pid)
    eventually(lambda: not engine.list(), "the end of the job")
    assert not alive(pid)


def stuck(engine: Blocking) -> str:
    status = engine.get("default", "frozen").status
    return status.message if status.reason == NOT_REMOVED else ""


def test_a_supervisor_that_is_frozen_is_ended_with_its_replica(
    engine: Blocking, home: Home, ice: Path, impatient: None
) -> None:
    submit(engine, a_job("cold", "exec sleep 600"))
    wait_for(engine, "cold", Phase.RUNNING)
    pid = pods_of(engine, "cold")[0].pid
    supervisor = supervisor_of(the_run_of(home, engine, "cold"))
    (ice / "cgroup.procs").write_text(str(supervisor))
    engine.stop("default", "cold")
    wait_for(engine, "cold", Phase.ABORTED)
    wait_until_quiet(engine, "cold")
    assert pid is not None
    assert not alive(pid)
    assert not alive(supervisor)
