"""A job's folder on disk: what it takes, and its removal, a little at a time."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from regatta.engines.local.on_behalf.own_folders import outside_of
from regatta.engines.local.replicas.removing import remove_tree


def size_on_disk(folder: Path) -> int:
    """Bytes that the disk holds for it; 0 where there is none."""
    total = 0
    for part in (folder, outside_of(folder)):
        for top, _, files in os.walk(part) if part is not None else ():
            total += _blocks(top) + sum(_blocks(os.path.join(top, file)) for file in files)
    return total


def remove_some(folder: Path, enough: Callable[[], bool]) -> bool:
    """Replica by replica, until `enough` was done for now (False) or it is gone. Raises OSError
    where something in it cannot be removed."""
    outside = outside_of(folder)
    lies_outside = () if outside is None else (*_entries(outside), outside)
    for part in (*lies_outside, *_entries(folder / "pods"), folder):
        if enough():
            return False
        if (failure := remove_tree(part)) is not None:
            raise failure
    return True


def _entries(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _blocks(path: str) -> int:
    try:
        return os.lstat(path).st_blocks * 512
    except OSError:  # gone meanwhile
        return 0
