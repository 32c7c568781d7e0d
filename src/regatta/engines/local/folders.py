"""A job's folder on disk: what it takes, and its removal, a little at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from regatta.engines.local.on_behalf.own_folders import outside_of
from regatta.engines.local.replicas.removing import remove_later, remove_tree

#: Entries of a part that are measured: what programs wrote may hold millions, as deep as they like.
MOST_MEASURED = 50_000


def size_on_disk(folder: Path) -> int:
    """Bytes that the disk holds for it, or for as much of it as is measured; 0 where there is
    none."""
    parts = filter(None, (folder, outside_of(folder)))
    return sum(sum(islice(_sizes(part), MOST_MEASURED)) for part in parts)


def _sizes(top: Path) -> Iterator[int]:
    yield _blocks(str(top))
    folders = [str(top)]
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    yield _blocks(entry.path)
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
        except OSError:  # gone meanwhile, or deeper than a path can say
            continue


def remove_some(folder: Path, enough: Callable[[], bool]) -> bool:
    """Replica by replica, until `enough` was done for now (False) or it is gone. Raises OSError
    where something in it cannot be removed."""
    outside = outside_of(folder)
    if outside is not None and (failure := remove_later(outside)) is not None:
        raise failure
    for part in (*_entries(folder / "pods"), folder):
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
