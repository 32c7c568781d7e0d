"""A replica that cannot be started because the disk is full waits for room: no fault of its job."""

from __future__ import annotations

from pathlib import Path

import pytest

from regatta.api.job import Job, Phase
from regatta.engines.blocking import Blocking
from regatta.engines.inventory import DISK_FULL
from regatta.engines.local import loop
from regatta.engines.local.replicas import keeper, runtime
from tests.engines.local.jobs import a_job, eventually, submit, wait_for, wait_until_quiet


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Undone, there is room."""
    monkeypatch.setattr(loop, "RETRY", 0.1)
    monkeypatch.setattr(runtime, "has_room_at_a_glance", lambda *_: False)
    return monkeypatch


def held_back(engine: Blocking, name: str) -> Job:
    def look() -> Job | None:
        job = engine.get("default", name)
        return job if job.status.reason == DISK_FULL else None

    return eventually(look, f"{name} being held back")


def test_it_waits_for_room_says_so_and_starts_then(
    engine: Blocking, full: pytest.MonkeyPatch
) -> None:
    submit(engine, a_job("next", "true"))
    job = held_back(engine, "next")
    assert not job.finished
    assert "is full: worker-0 cannot be started" in job.status.message
    assert "it goes on then" in job.status.message
    assert "replicas cannot be started" in engine.traits().notices[0]
    full.undo()
    assert wait_for(engine, "next", Phase.COMPLETED).status.reason != DISK_FULL
    assert engine.traits().notices == ()


def test_a_failure_is_followed_by_one_restart_that_waits(
    engine: Blocking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = f"until [ -e {tmp_path}/go ]; do sleep 0.02; done; exit 1"
    submit(engine, a_job("again", script, runPolicy={"backoffLimit": 1}))
    wait_for(engine, "again", Phase.RUNNING)
    monkeypatch.setattr(loop, "RETRY", 0.1)
    monkeypatch.setattr(runtime, "has_room_at_a_glance", lambda *_: False)
    (tmp_path / "go").touch()
    assert held_back(engine, "again").status.restarts == 1
    monkeypatch.undo()
    wait_for(engine, "again", Phase.FAILED)
    assert [pod.exit_code for pod in engine.pods("default", "again")] == [1, 1]


@pytest.mark.usefixtures("full")
def test_it_can_be_stopped_meanwhile(engine: Blocking) -> None:
    submit(engine, a_job("next", "true"))
    held_back(engine, "next")
    engine.stop("default", "next")
    wait_for(engine, "next", Phase.ABORTED)
    wait_until_quiet(engine, "next")
    assert engine.traits().notices == ()


def test_a_supervisor_that_found_no_room_for_its_claim_is_started_again(
    engine: Blocking, monkeypatch: pytest.MonkeyPatch
) -> None:
    supervisor = runtime.SUPERVISOR
    monkeypatch.setattr(runtime, "SUPERVISOR", "/nowhere.py")
    monkeypatch.setattr(keeper, "has_room", lambda *_: False)
    submit(engine, a_job("next", "true"))
    eventually(lambda: engine.pods("default", "next"), "its replica")
    monkeypatch.setattr(runtime, "SUPERVISOR", supervisor)
    wait_for(engine, "next", Phase.COMPLETED)
