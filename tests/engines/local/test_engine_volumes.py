"""What becomes of a replica's volumes when it ends."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from regatta.api.errors import JobNotFound
from regatta.api.job import Job, Phase
from regatta.engines.base import LogQuery
from regatta.engines.blocking import Blocking
from regatta.engines.local import rubbish
from regatta.engines.local.home import Home
from tests.engines.local.jobs import a_job, eventually, submit, texts, wait_for
from tests.engines.local.runs import CAN_MOUNT, HAS_NAMESPACES

pytestmark = pytest.mark.skipif(
    not HAS_NAMESPACES, reason="this machine gives neither mount nor user namespaces to this user"
)


def test_an_empty_dir_lasts_through_restarts_in_place_and_ends_with_its_pod(
    engine: Blocking, home: Home, tmp_path: Path
) -> None:
    host = tmp_path / "host"
    host.mkdir()
    (host / "precious").write_text("kept")
    script = f"cd /scratch; [ -e first ] && exit; touch first; ln -s {host} link; echo once; exit 1"
    job = a_job("scratch", script, restartPolicy="OnFailure")
    pod = job["spec"]["worker"]["template"]["spec"]
    pod["volumes"] = [
        {"name": "empty", "emptyDir": {}},
        {"name": "host", "hostPath": {"path": str(host)}},
    ]
    pod["containers"][0]["volumeMounts"] = [
        {"name": "empty", "mountPath": "/scratch"},
        {"name": "host", "mountPath": "/scratch/host"},
    ]
    uid = submit(engine, job).uid
    wait_for(engine, "scratch", Phase.COMPLETED)
    (run,) = home.job(uid).glob("pods/*/runs/*")
    eventually(lambda: not (run / "volumes").exists(), "the end of its scratch space")
    assert (host / "precious").read_text() == "kept"
    lines = texts(engine.logs("default", "scratch", LogQuery()))
    assert "once" in lines


def test_the_scratch_space_of_a_running_replica_is_kept(engine: Blocking, home: Home) -> None:
    job = a_job("busy", "touch /scratch/used; exec sleep 600")
    pod = job["spec"]["worker"]["template"]["spec"]
    pod["volumes"] = [{"name": "empty", "emptyDir": {}}]
    pod["containers"][0]["volumeMounts"] = [{"name": "empty", "mountPath": "/scratch"}]
    uid = submit(engine, job).uid
    wait_for(engine, "busy", Phase.RUNNING)
    submit(engine, a_job("other", "true"))
    wait_for(engine, "other", Phase.COMPLETED)
    used = f"{home.job(uid)}/pods/*/runs/*/volumes/empty/used"
    eventually(lambda: list(Path("/").glob(used[1:])), "its file")
    engine.stop("default", "busy")
    eventually(lambda: not list(Path("/").glob(used[1:])), "the end of its scratch space")


@pytest.mark.skipif(not CAN_MOUNT, reason="only root can make what root cannot remove")
def test_what_cannot_be_removed_is_told_and_a_deleted_job_stays_until_it_can(
    engine: Blocking, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rubbish, "LATER", 0.05)
    job = a_job("held", "mkdir /scratch/held; exec sleep 600")
    pod = job["spec"]["worker"]["template"]["spec"]
    pod["volumes"] = [{"name": "empty", "emptyDir": {}}]
    pod["containers"][0]["volumeMounts"] = [{"name": "empty", "mountPath": "/scratch"}]
    uid = submit(engine, job).uid
    pattern = "pods/*/runs/*/volumes/empty/held"
    (place,) = eventually(lambda: list(home.job(uid).glob(pattern)), "its folder")
    subprocess.run(["mount", "-t", "tmpfs", "regatta-test", place], check=True)
    try:
        engine.stop("default", "held")
        wait_for(engine, "held", Phase.ABORTED)

        def told() -> list[str]:
            events = engine.events("default", "held")
            return [event.message for event in events if event.reason == "NotRemoved"]

        (message,) = eventually(told, "a warning")
        assert f"{place} (Device or resource busy)" in message

        engine.delete("default", "held")

        def stuck() -> Job | None:
            job = engine.get("default", "held")
            return job if job.status.reason == "NotRemoved" else None

        shown = eventually(stuck, "a word about it")
        assert f"{place} cannot be removed (Device or resource busy)" in shown.status.message
        assert str(place) in engine.traits().notices[0]
    finally:
        subprocess.run(["umount", place], check=True)

    def gone() -> bool:
        try:
            engine.get("default", "held")
        except JobNotFound:
            return True
        return False

    eventually(gone, "the end of the job")
    assert not home.job(uid).exists()
    assert engine.traits().notices == ()
