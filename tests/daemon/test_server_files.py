"""Locks that say who is there, looked at by many at once."""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest

from regatta.daemon.server_files import FileLock, is_held


def test_a_lock_is_held_until_its_holder_lets_go(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    assert not is_held(path)
    holder = FileLock(path)
    assert holder.take()
    assert is_held(path)
    assert not FileLock(path).take()
    holder.release()
    assert not is_held(path)


def test_whoever_looks_at_a_free_lock_while_another_looks_sees_it_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "lock"
    path.touch()
    flock, seen = fcntl.flock, list[bool]()

    def another_looks(descriptor: int, operation: int) -> None:
        flock(descriptor, operation)
        monkeypatch.setattr(fcntl, "flock", flock)
        seen.append(is_held(path))

    monkeypatch.setattr(fcntl, "flock", another_looks)
    assert not is_held(path)
    assert seen == [False]
