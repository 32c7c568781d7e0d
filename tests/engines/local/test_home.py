"""The state folder: private, one engine at a time, and not on a network file system."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from regatta.api.errors import EngineIsRunning, HomeRefused
from regatta.engines.local import home as homes
from regatta.engines.local.home import file_system_of, is_network, lock_home, machine_id, open_home


def test_it_lies_under_the_machine_id_and_is_private(tmp_path: Path) -> None:
    home = open_home(tmp_path / "regatta")
    assert home.path == tmp_path / "regatta" / machine_id()
    assert home.path.stat().st_mode & 0o777 == 0o700


def test_the_variable_names_the_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGATTA_HOME", str(tmp_path / "elsewhere"))
    assert open_home().path.parent == tmp_path / "elsewhere"
    monkeypatch.delenv("REGATTA_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert homes.home_root() == tmp_path / ".regatta"


def test_two_engines_on_one_home_are_impossible(tmp_path: Path) -> None:
    home = open_home(tmp_path)
    first = lock_home(home)
    with pytest.raises(EngineIsRunning, match="another engine"):
        lock_home(home)
    os.close(first)
    os.close(lock_home(home))


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "lustre"])
def test_a_network_file_system_is_refused_with_what_to_set(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(homes, "file_system_of", lambda path: kind)
    with pytest.raises(HomeRefused, match=rf"\({kind}\).*Set REGATTA_HOME"):
        open_home(tmp_path)


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "overlay", "tmpfs", "zfs", ""])
def test_a_local_file_system_is_not(kind: str) -> None:
    assert not is_network(kind)


def test_the_nearest_mount_that_holds_the_folder_decides(tmp_path: Path) -> None:
    inner = tmp_path / "with space" / "deep"
    mounts = "\n".join(
        [
            "/dev/sda1 / ext4 rw 0 0",
            f"server:/x {tmp_path} nfs4 rw 0 0",
            f"/dev/sdb1 {str(tmp_path / 'with space').replace(' ', chr(92) + '040')} xfs rw 0 0",
        ]
    )
    assert file_system_of(tmp_path / "other", mounts) == "nfs4"
    (tmp_path / "with space").mkdir()
    assert file_system_of(inner, mounts) == "xfs"


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(HomeRefused, match="cannot be used"):
        open_home(tmp_path / "file")
