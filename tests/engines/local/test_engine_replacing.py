"""One job takes another's name: what ran under it ends first, and nothing of it is lost."""

from __future__ import annotations

from pathlib import Path

from regatta.api.job import Phase
from regatta.controller.labels import REPLACED_BY
from regatta.engines.base import LogQuery
from regatta.engines.blocking import Blocking
from tests.engines.local.jobs import (
    a_job,
    a_role,
    alive,
    eventually,
    pods_of,
    submit,
    texts,
    wait_for,
)
from tests.engines.local.opening import OpenEngine

WAITS = "waits for the job it replaces to end"


def a_job_that_leaves_its_server_running(server: str) -> dict[str, object]:
    spec = {"cleanPodPolicy": "Never", "withGloo": 0, "ps": a_role(server)}
    return a_job("again", "true", **spec)


def a_program_slow_to_end(folder: Path) -> str:
    """It ignores SIGTERM until it is told to leave, and `busy` is there while it runs."""
    wait = f"while [ ! -e {folder}/leave ]; do sleep 0.02; done"
    return f"trap '' TERM; touch {folder}/busy; {wait}; rm {folder}/busy"


def test_servers_that_ran_on_are_stopped_when_the_job_is_run_again(engine: Blocking) -> None:
    old = submit(engine, a_job_that_leaves_its_server_running("echo served; exec sleep 600"))
    wait_for(engine, "again", Phase.COMPLETED)
    eventually(lambda: _lines(engine, old.uid) == ["served"], "what its server says")
    (server,) = pods_of(engine, "again", "ps")
    assert server.pid is not None
    assert alive(server.pid)
    submit(engine, a_job("again", "true"))
    wait_for(engine, "again", Phase.COMPLETED)
    assert not alive(server.pid)
    assert engine.get("default", "again", old.uid).status.phase is Phase.COMPLETED
    assert _lines(engine, old.uid) == ["served"]


def _lines(engine: Blocking, uid: str) -> list[str]:
    return texts(engine.logs("default", "again", LogQuery(uid=uid, role="ps")))


def test_a_job_waits_for_the_servers_of_the_one_whose_name_it_takes(
    engine: Blocking, tmp_path: Path
) -> None:
    job = a_job_that_leaves_its_server_running(a_program_slow_to_end(tmp_path))
    job["spec"]["ps"]["template"]["spec"]["terminationGracePeriodSeconds"] = 600  # type: ignore[index]
    submit(engine, job)
    wait_for(engine, "again", Phase.COMPLETED)
    eventually((tmp_path / "busy").exists, "its server")
    submit(engine, a_job("again", f"[ ! -e {tmp_path}/busy ]"))
    eventually(lambda: engine.get("default", "again").status.message == WAITS, "its waiting")
    (tmp_path / "leave").touch()
    wait_for(engine, "again", Phase.COMPLETED)


def test_a_replacement_starts_only_after_the_replaced_job_is_over_even_if_the_server_is_restarted(
    open_engine: OpenEngine, tmp_path: Path
) -> None:
    engine = open_engine()
    job = a_job("same", a_program_slow_to_end(tmp_path))
    job["spec"]["worker"]["template"]["spec"]["terminationGracePeriodSeconds"] = 600
    old = submit(engine, job)
    wait_for(engine, "same", Phase.RUNNING)
    eventually((tmp_path / "busy").exists, "the first training")
    new = submit(engine, a_job("same", f"[ ! -e {tmp_path}/busy ]"), replace=True)
    eventually(lambda: engine.get("default", "same").status.message == WAITS, "its waiting")
    engine.close()
    engine = open_engine()
    submit(engine, a_job("other", "true"))
    wait_for(engine, "other", Phase.COMPLETED)  # the engine has looked at its queue again
    assert engine.get("default", "same").status.message == WAITS
    assert not pods_of(engine, "same")[0].address
    (tmp_path / "leave").touch()
    wait_for(engine, "same", Phase.COMPLETED)
    status = engine.get("default", "same", old.uid).status
    assert status.phase is Phase.ABORTED
    assert status.message == f"replaced by the run with the UID {new.uid}"


def test_a_file_that_was_copied_from_a_replaced_job_is_nobodys_replacement(
    engine: Blocking,
) -> None:
    job = a_job("copied", "exec sleep 600")
    job["metadata"]["annotations"] = {REPLACED_BY: "somebody", "mine": "yes"}
    assert submit(engine, job).metadata.annotations == {"mine": "yes"}
    engine.stop("default", "copied")
    assert wait_for(engine, "copied", Phase.ABORTED).status.message == "stopped on request"
