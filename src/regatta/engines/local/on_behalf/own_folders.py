"""The folders of runs whose processes may not look into the engine's own: made, found, removed.

    <runs>/<job uid>/<pod uid>/<run>/progress.jsonl   the account's
                                     paddle/          the account's
                                     volumes/<name>/  the account's

All above these is the engine's alone to write to, and may only be passed by others. So an account
cannot put anything else in their place, and whatever it does inside them is met by descriptor
(`replicas/removing.py`). Links in the engine's folder lead here, and only the engine writes those.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from regatta.engines.base import RunAs
from regatta.engines.local.replicas.removing import remove_later, remove_tree
from regatta.engines.local.replicas.runspec import (
    PADDLE_LOGS_FOLDER,
    PROGRESS_FILE,
    VOLUMES_FOLDER,
    Account,
    OwnFolder,
)

#: In a job's folder: leads to what lies outside of it.
LINK = "own"
#: Others pass it, and see nothing.
_PASSED = 0o711
_PRIVATE_FOLDER = 0o700
_PRIVATE_FILE = 0o600


def own_folder(runs: str, job_uid: str, pod_uid: str, run: int) -> Path:
    return Path(runs, job_uid, pod_uid, str(run))


def account_of(who: RunAs, folders: tuple[str, ...] | None, ours: tuple[str, ...]) -> Account:
    """`folders`: those that settings allow to be mounted; `ours` may be without their word."""
    allowed = None if folders is None else (*folders, *ours)
    return Account(uid=who.uid, gid=who.gid, groups=who.groups, folders=allowed)


def describe_own(path: Path, made: Iterable[str], account: Account | None) -> OwnFolder:
    """`made`: folders that volumes need, of which those in it are meant. Without an account they
    are of whoever runs the containers."""
    scratch = path / VOLUMES_FOLDER
    inside = (Path(folder).relative_to(scratch) for folder in made if _is_in(folder, scratch))
    volumes = {f"{VOLUMES_FOLDER}/{folder.parts[0]}" for folder in inside}
    return OwnFolder(
        path=str(path),
        uid=account.uid if account else os.getuid(),
        gid=account.gid if account else os.getgid(),
        folders=(PADDLE_LOGS_FOLDER, *sorted(volumes)),
    )


def _is_in(folder: str, above: Path) -> bool:
    return Path(folder).is_relative_to(above)


def make_own(own: OwnFolder, run: Path) -> None:
    """For the run in this folder, with links from there. Again does no harm, also while it is in
    use."""
    path = Path(own.path)
    # First, so that whoever is killed now leaves nothing that is not found.
    _link(path.parents[1], run.parents[3] / LINK)
    for level in (*reversed(path.parents[:2]), path):
        _make(level)
    progress = path / PROGRESS_FILE
    fd = os.open(progress, os.O_CREAT | os.O_NOFOLLOW | os.O_WRONLY, _PRIVATE_FILE)
    try:
        os.fchown(fd, own.uid, own.gid)
    finally:
        os.close(fd)
    for name in own.folders:
        inner = path / name
        if ".." in inner.parts:  # names of volumes are checked long before; this one must not slip
            raise ValueError(f"{name!r} leads out of {path}")
        if inner.parent != path:
            _make(inner.parent)
        with suppress(FileExistsError):
            inner.mkdir(mode=_PRIVATE_FOLDER)
        os.chown(inner, own.uid, own.gid, follow_symlinks=False)
    _link(progress, run / PROGRESS_FILE)
    if (path / VOLUMES_FOLDER).is_dir():
        _link(path / VOLUMES_FOLDER, run / VOLUMES_FOLDER)


def _make(folder: Path) -> None:
    """One that accounts pass, in a folder that nobody else writes to."""
    with suppress(FileExistsError):
        folder.mkdir(mode=_PRIVATE_FOLDER)
    folder.chmod(_PASSED)  # whatever this process's own mask is


def _link(target: Path, link: Path) -> None:
    with suppress(FileExistsError):
        link.symlink_to(target)


def outside_of(job_folder: Path) -> Path | None:
    """Where what a job's replicas wrote lies, if not in its folder."""
    try:
        return Path(os.readlink(job_folder / LINK))
    except OSError:
        return None


def remove_job(folder: Path) -> OSError | None:
    """A job's folder, after what lies outside of it. What keeps it from being removed; None: it is
    gone."""
    outside = outside_of(folder)
    if outside is not None and (failure := remove_later(outside)) is not None:
        return failure
    return remove_tree(folder)


def remove_pod(folder: Path) -> OSError | None:
    """The same of one pod's folder."""
    outside = outside_of(folder.parents[1])
    if outside is not None and (failure := remove_later(outside / folder.name)) is not None:
        return failure
    return remove_tree(folder)
