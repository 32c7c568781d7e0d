"""Folders that a program still writes to are out of everybody's way at once, and go in the end."""

from __future__ import annotations

import errno
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from regatta.engines.local.replicas import removing
from regatta.engines.local.replicas.removing import go_on_removing, remove_later, remove_tree
from tests.engines.local.jobs import eventually

#: Makes folders in where it is, whatever that is called by now.
GROWS = "n=0; while :; do n=$((n+1)); mkdir -p a$n/b/c 2>/dev/null; done"


@contextmanager
def growing(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True)
    with subprocess.Popen(["sh", "-c", GROWS], cwd=folder) as program:
        try:
            eventually(lambda: any(folder.iterdir()), "its first folder")
            yield
        finally:
            program.kill()


@pytest.fixture(autouse=True)
def short_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(removing, "TURN", 0.2)
    monkeypatch.setattr(removing, "PAUSE", 0.01)


def test_a_folder_that_grows_is_gone_from_its_place_and_keeps_no_other_one(tmp_path: Path) -> None:
    other = tmp_path / "other/job"
    (other / "in/ner").mkdir(parents=True)
    with growing(tmp_path / "part/job"):
        assert remove_later(tmp_path / "part/job") is None
        assert not (tmp_path / "part/job").exists()
        assert remove_later(other) is None
        eventually(lambda: not any(other.parent.iterdir()), "the end of the other")
    eventually(lambda: not any((tmp_path / "part").iterdir()), "the end of the one that grew")


def test_what_a_killed_process_left_is_found_by_the_next(tmp_path: Path) -> None:
    (tmp_path / ".gone-1/in").mkdir(parents=True)
    (tmp_path / "job").mkdir()
    go_on_removing(tmp_path)
    eventually(lambda: not (tmp_path / ".gone-1").exists(), "the end of what was left")
    assert (tmp_path / "job").is_dir()


def test_a_folder_that_cannot_be_opened_for_now_goes_when_it_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as while all that a process may have open are connections."""
    asked: list[Path] = []

    def at_the_third(folder: Path, seconds: float) -> OSError | None:
        asked.append(folder)
        if len(asked) < 3:
            return OSError(errno.EMFILE, "Too many open files", str(folder))
        return remove_tree(folder, seconds)

    monkeypatch.setattr(removing, "remove_tree", at_the_third)
    (tmp_path / "job/in").mkdir(parents=True)
    assert remove_later(tmp_path / "job") is None
    eventually(lambda: not any(tmp_path.iterdir()), "its end")


def test_a_mistake_with_one_folder_keeps_no_other_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(folder: Path, seconds: float) -> OSError | None:
        if (folder / "odd").exists():
            raise ValueError("odd")
        return remove_tree(folder, seconds)

    monkeypatch.setattr(removing, "remove_tree", fails)
    (tmp_path / "one/odd").mkdir(parents=True)
    (tmp_path / "other/in").mkdir(parents=True)
    assert remove_later(tmp_path / "one") is None
    assert remove_later(tmp_path / "other") is None
    eventually(lambda: len(list(tmp_path.iterdir())) == 1, "the end of the other")
    assert "a folder of a job that is gone stays" in caplog.text


def test_a_thread_that_cannot_be_started_is_started_for_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "other").mkdir()
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", _cannot_start)
        assert remove_later(tmp_path / "one") is None
    assert remove_later(tmp_path / "other") is None
    eventually(lambda: not any(tmp_path.iterdir()), "the end of both")


def _cannot_start(thread: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


def test_what_is_not_there_is_gone(tmp_path: Path) -> None:
    assert remove_later(tmp_path / "none") is None
    assert not any(tmp_path.iterdir())


def test_a_removal_ends_when_its_time_is_over(tmp_path: Path) -> None:
    (tmp_path / "tree/in").mkdir(parents=True)
    failure = remove_tree(tmp_path / "tree", -1.0)
    assert failure is not None
    assert failure.errno == errno.ETIMEDOUT
    assert remove_tree(tmp_path / "tree") is None
