"""The folders in which a team's jobs work.

    <work>/<whose>/jobs/<job>/   where a job starts: the account's, closed to all others
                   runs/         what its replicas write and the engine reads
                   home/         the account's, for all of its jobs
    <work>/library/              what training programs import of us

All but the accounts' own is the server's alone to write to: so no account can put a link in the
place of a folder that the server makes or removes.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import regatta._inject
from regatta.api.errors import BadSetting, NotPossible
from regatta.engines.local.replicas.removing import go_on_removing, remove_later

JOBS, RUNS, HOME, LIBRARY = "jobs", "runs", "home", "library"
#: Whose an account's part is, and which server's all of it.
_OWNER, _STATE = "account", "state"
_PASSED, _PASSED_BY_GROUP, _CLOSED = 0o711, 0o710, 0o700
#: One step of a path, that leads nowhere else and hides nothing.
_JOB = re.compile(r"[A-Za-z0-9][A-Za-z0-9._~-]{0,199}")


class WorkFolders:
    def __init__(self, path: Path, *, others_pass: bool) -> None:
        """`others_pass`: accounts other than this process's own work there."""
        self.path = path
        self._others_pass = others_pass

    def open(self, state: Path) -> None:
        """Make it, and refuse a place where it would not be what it has to be."""
        path, state = Path(os.path.realpath(self.path)), Path(os.path.realpath(state))
        if path == state or path.is_relative_to(state) or state.is_relative_to(path):
            raise BadSetting(
                f"work: {path} and the state folder {state} lie in each other; name a folder "
                "beside it, as /var/lib/regatta/work"
            )
        mode = _PASSED if self._others_pass else _CLOSED
        try:
            for folder in [above for above in reversed(path.parents) if not above.exists()]:
                folder.mkdir(exist_ok=True)
                folder.chmod(0o755 if self._others_pass else _CLOSED)  # whatever our mask is
            path.mkdir(exist_ok=True)
            _require_ours(path)
            path.chmod(mode)
            self._copy_library()
            whose = _note(path / _STATE, str(state))
        except OSError as error:
            raise BadSetting(f"work: {path} cannot be used ({error.strerror})") from None
        if whose != str(state):
            raise BadSetting(
                f"work: {path} is that of the server whose state folder is {whose}; name another "
                f"folder. If the state folder was moved, write its new path into {path / _STATE}"
            )
        if self._others_pass and not can_be_passed(path):
            above = next(folder for folder in path.parents if not _is_passed(folder))
            raise BadSetting(
                f"work: {path} is in {above}, which other accounts may not pass; name a folder "
                "that they can reach, as /var/lib/regatta/work"
            )
        for name in (JOBS, RUNS):
            for part in path.glob(f"*/{name}"):
                go_on_removing(part)

    @property
    def library(self) -> Path:
        return self.path / LIBRARY

    def _copy_library(self) -> None:
        """Where we are installed, perhaps in root's own home, accounts need not be able to look."""
        fresh = self.path / f".{LIBRARY}"
        shutil.rmtree(fresh, ignore_errors=True)
        source = Path(regatta._inject.__file__).parent
        if _same_files(source, self.library):  # on a full disk nothing more would be written
            return
        for file in sorted(source.rglob("*.py")):
            target = fresh / file.relative_to(source)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.read_bytes())
            target.chmod(0o644)
        for folder in (fresh, *(entry for entry in fresh.rglob("*") if entry.is_dir())):
            folder.chmod(0o755)
        shutil.rmtree(self.library, ignore_errors=True)
        fresh.rename(self.library)

    def of(self, whose: str, owner: str, uid: int, gid: int) -> Path:
        """This account's part, made if it is missing. Raises NotPossible where it is another
        `owner`'s: what was left by one account is not the next one's."""
        folder, passed = self.path / whose, _PASSED if self._others_pass else _CLOSED
        _make(folder, _PASSED_BY_GROUP if self._others_pass else _CLOSED, os.getuid(), gid)
        if why := _why_anothers(folder, _note(folder / _OWNER, owner), owner):
            raise NotPossible(
                f"{why}, which had uid {uid} before; an admin gives the account another uid, or "
                "moves that folder away"
            )
        for name in (JOBS, RUNS):
            _make(folder / name, passed)
        _make(folder / HOME, _CLOSED, uid, gid)
        return folder

    def why_anothers(self, whose: str, owner: str) -> str:
        """Why this part cannot be `owner`'s; empty: it is, or is nobody's yet."""
        folder = self.path / whose
        try:
            said = (folder / _OWNER).read_text()
        except FileNotFoundError:
            return ""
        return _why_anothers(folder, said, owner)

    def make_job(self, folder: Path, job_id: str, uid: int, gid: int) -> Path:
        """Where a job starts, in its account's part; again it is the same one."""
        job = folder / JOBS / _checked(job_id)
        _make(job, _CLOSED, uid, gid)
        return job

    def forget(self, job_id: str) -> OSError | None:
        """What keeps a job's folder where it is; None: it is gone from there."""
        for job in self.path.glob(f"*/{JOBS}/{_checked(job_id)}"):
            if (failure := remove_later(job)) is not None:
                return failure
        return None

    def jobs(self) -> Iterator[str]:
        """Those that have a folder."""
        return (job.name for job in self.path.glob(f"*/{JOBS}/*"))

    def forget_like(self, prefix: str) -> list[OSError]:
        some = [job for job in self.jobs() if job.startswith(prefix)]
        return [failure for job in some if (failure := self.forget(job)) is not None]


def _why_anothers(folder: Path, said: str, owner: str) -> str:
    return "" if said == owner else f"{folder} holds files of another account"


def can_be_passed(path: Path) -> bool:
    """By every account, on the way to it; what is not there yet is made so."""
    return all(map(_is_passed, Path(os.path.realpath(path)).parents))


def _is_passed(folder: Path) -> bool:
    return not folder.exists() or bool(folder.stat().st_mode & stat.S_IXOTH)


def _checked(job_id: str) -> str:
    if _JOB.fullmatch(job_id) is None:
        raise ValueError(f"{job_id!r} names no folder")
    return job_id


def _make(folder: Path, mode: int, uid: int | None = None, gid: int | None = None) -> None:
    """In a folder that only this process's user writes to. What is there is finished, should
    somebody have been killed while making it."""
    with suppress(FileExistsError):
        folder.mkdir(mode=_CLOSED)
    wanted = (os.getuid() if uid is None else uid, os.getgid() if gid is None else gid)
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode):
        raise NotPossible(f"{folder} is no folder; an admin has to move it away")
    if (found.st_uid, found.st_gid) != wanted:
        os.chown(folder, *wanted, follow_symlinks=False)
    if uid is None or uid == os.getuid():  # an account's own is as it wants it
        folder.chmod(mode)


def _note(file: Path, text: str) -> str:
    """What it says from now on, or has said before. Whole or not there at all."""
    if not file.exists():
        fresh = file.with_name(f".{file.name}-{uuid.uuid4()}")
        fresh.write_text(text)
        with suppress(FileExistsError):
            os.link(fresh, file)
        fresh.unlink()
    return file.read_text()


def _require_ours(path: Path) -> None:
    found = path.stat()
    if found.st_uid != os.getuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise BadSetting(
            f"work: {path} is uid {found.st_uid}'s, mode {stat.S_IMODE(found.st_mode):o}; it has "
            f"to be the server's own (uid {os.getuid()}), and nobody else may write to it"
        )


def _same_files(one: Path, other: Path) -> bool:
    files = [file.relative_to(one) for file in one.rglob("*.py")]
    try:
        return all((one / file).read_bytes() == (other / file).read_bytes() for file in files)
    except OSError:
        return False
