"""Folders of jobs: measured as the disk counts, and removed while nobody has to wait for it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from regatta.engines.local import folders
from regatta.engines.local.folders import remove_some, size_on_disk
from regatta.engines.local.home import Home, open_home
from regatta.engines.local.on_behalf.own_folders import LINK
from regatta.engines.local.replicas.removing import remove_tree
from tests.engines.local.jobs import eventually
from tests.engines.local.replicas.test_removing import make_chain
from tests.engines.local.replicas.test_removing_later import growing


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return open_home(tmp_path / "home")


def a_folder(home: Home, uid: str, pods: int) -> Path:
    for number in range(pods):
        run = home.pod(uid, f"pod-{number}") / "runs" / "1"
        run.mkdir(parents=True)
        (run / "log.0").write_bytes(b"x" * 10_000)
    return home.job(uid)


def test_a_folder_takes_what_the_disk_holds_for_it(home: Home) -> None:
    folder = a_folder(home, "job", pods=3)
    (folder / "sparse").touch()
    os.truncate(folder / "sparse", 1 << 30)
    assert 3 * 10_000 <= size_on_disk(folder) < 1_000_000
    assert size_on_disk(home.job("nobody")) == 0


def test_a_large_folder_goes_a_little_at_a_time(home: Home) -> None:
    folder = a_folder(home, "large", pods=5)

    def two_at_most() -> bool:
        return len(list((folder / "pods").iterdir())) <= before - 2

    before = 5
    assert not remove_some(folder, two_at_most)
    assert len(list((folder / "pods").iterdir())) == 3
    before = 3
    assert not remove_some(folder, two_at_most)
    assert remove_some(folder, lambda: False)
    assert not folder.exists()
    assert remove_some(folder, lambda: False)  # one that never was is gone


def test_what_cannot_be_removed_is_told(home: Home, tmp_path: Path) -> None:
    home.job("in-the-way").symlink_to(tmp_path)  # which no removal follows
    with pytest.raises(OSError, match="in-the-way"):
        remove_some(home.job("in-the-way"), lambda: False)


def test_what_programs_made_is_measured_as_far_as_that_is_soon_done(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_chain(a_folder(home, "deep", pods=1))
    assert size_on_disk(home.job("deep")) > 10_000
    assert remove_tree(home.job("deep")) is None

    folder = a_folder(home, "wide", pods=1)
    for number in range(50):
        (folder / f"file-{number}").write_bytes(b"x" * 10_000)
    whole = size_on_disk(folder)
    monkeypatch.setattr(folders, "MOST_MEASURED", 20)
    assert 10_000 < size_on_disk(folder) < whole / 2


def test_what_an_account_still_writes_to_keeps_nobody_waiting(home: Home, tmp_path: Path) -> None:
    folder = a_folder(home, "job", pods=1)
    outside = tmp_path / "runs/job"
    with growing(outside / "pod/1/paddle"):
        (folder / LINK).symlink_to(outside)
        assert remove_some(folder, lambda: False)
        assert not folder.exists()
        assert not outside.exists()
    eventually(lambda: not any(outside.parent.iterdir()), "the end of what was written")
