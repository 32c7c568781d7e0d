"""What becomes of a replica's volumes when it ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from regatta.api.job import Phase
from regatta.engines.base import LogQuery
from regatta.engines.blocking import Blocking
from regatta.engines.local.home import Home
from tests.engines.local.jobs import a_job, eventually, submit, texts, wait_for
from tests.engines.local.runs import HAS_NAMESPACES

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
