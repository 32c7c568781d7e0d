"""The folders of runs whose processes may not look into the engine's own."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from regatta.engines.local.folders import remove_some, size_on_disk
from regatta.engines.local.on_behalf.own_folders import (
    describe_own,
    make_own,
    own_folder,
    remove_job,
    remove_pod,
)
from regatta.engines.local.replicas.runspec import Account, OwnFolder, run_folder
from tests.engines.local.jobs import eventually


@pytest.fixture
def job(tmp_path: Path) -> Path:
    return tmp_path / "home/jobs/job-1"


def made(tmp_path: Path, job: Path, pod: str = "pod-1", run: int = 1, *volumes: str) -> OwnFolder:
    folder = run_folder(job / "pods" / pod, run)
    folder.mkdir(parents=True)
    (tmp_path / "runs").mkdir(exist_ok=True)
    path = own_folder(str(tmp_path / "runs"), "job-1", pod, run)
    own = describe_own(path, [f"{path}/volumes/{name}" for name in volumes], None)
    make_own(own, folder)
    return own


def test_what_is_in_them_is_the_accounts_and_the_way_there_is_not(
    tmp_path: Path, job: Path
) -> None:
    own = Path(made(tmp_path, job, "pod-1", 1, "a", "b/inner").path)
    assert sorted(str(path.relative_to(own)) for path in own.rglob("*")) == [
        "paddle", "progress.jsonl", "volumes", "volumes/a", "volumes/b",
    ]  # fmt: skip
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (own, *own.rglob("*"))}
    for passed in (own, own.parent, own.parents[1], own / "volumes"):
        assert stat.S_IMODE(passed.stat().st_mode) == 0o711
    for private in (own / "paddle", own / "volumes/a"):
        assert modes[private] == 0o700
    assert modes[own / "progress.jsonl"] == 0o600


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to others")
def test_they_are_given_to_the_account(tmp_path: Path, job: Path) -> None:
    path = own_folder(str(tmp_path / "runs"), "job-1", "pod-1", 1)
    (tmp_path / "runs").mkdir()
    run = run_folder(job / "pods/pod-1", 1)
    run.mkdir(parents=True)
    own = describe_own(path, [f"{path}/volumes/a/b"], Account(uid=230_021, gid=230_022))
    make_own(own, run)
    for name in ("paddle", "progress.jsonl", "volumes/a"):
        found = (path / name).stat()
        assert (found.st_uid, found.st_gid) == (230_021, 230_022)
    for ours in (path, path / "volumes", path.parent):
        assert ours.stat().st_uid == 0


def test_made_again_they_stay_as_they_are(tmp_path: Path, job: Path) -> None:
    own = made(tmp_path, job, "pod-1", 1, "a")
    (Path(own.path) / "progress.jsonl").write_text("reported")
    (Path(own.path) / "volumes/a/file").write_text("kept")
    make_own(own, run_folder(job / "pods/pod-1", 1))
    assert (run_folder(job / "pods/pod-1", 1) / "progress.jsonl").read_text() == "reported"
    assert (Path(own.path) / "volumes/a/file").read_text() == "kept"


def test_a_name_that_leads_elsewhere_is_not_made(tmp_path: Path, job: Path) -> None:
    with pytest.raises(ValueError, match="leads out of"):
        made(tmp_path, job, "pod-1", 1, "../../x")


def test_a_pod_goes_with_what_it_wrote_and_the_others_stay(tmp_path: Path, job: Path) -> None:
    one, other = made(tmp_path, job, "pod-1"), made(tmp_path, job, "pod-2")
    assert remove_pod(job / "pods/pod-1") is None
    assert not Path(one.path).exists()
    assert not (job / "pods/pod-1").exists()
    assert Path(other.path).exists()
    assert remove_job(job) is None
    assert not job.exists()
    eventually(lambda: not any((tmp_path / "runs").iterdir()), "the end of what it wrote")


def test_a_job_that_is_removed_a_little_at_a_time_leaves_nothing(tmp_path: Path, job: Path) -> None:
    own = made(tmp_path, job)
    (Path(own.path) / "paddle/log").write_bytes(b"x" * 100_000)
    assert size_on_disk(job) > 100_000
    looks = iter([False, True, False, False, False, False])
    assert not remove_some(job, lambda: next(looks))
    assert remove_some(job, lambda: False)
    assert not job.exists()
    eventually(lambda: not any((tmp_path / "runs").iterdir()), "the end of what it wrote")


def test_one_that_wrote_nowhere_else_is_removed_as_ever(job: Path) -> None:
    (job / "pods/pod-1/runs/1").mkdir(parents=True)
    assert remove_pod(job / "pods/pod-1") is None
    assert remove_job(job) is None
    assert not job.exists()
