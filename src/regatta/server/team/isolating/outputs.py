"""Where the jobs of OpenPAI's v1 configs write that do not say where: `Output/USER`, below the
folder that `defaultFsUri` names.

Whoever made such a folder could read what is written there, and exchange it. So root makes each
and gives it to its account, before a job of that account gets there. Where root may not, as on a
share that takes it for nobody, the task makes it itself, and looks whose it is
(`api/openpai/scripts.py`).

Members may write beside these folders, and lay links there. Root goes by descriptor, follows none,
and makes nothing where others could put something else under the name of what it made.
"""

from __future__ import annotations

import os
import pwd
import shlex
import stat
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from regatta.api.errors import NotPossible

OUTPUT = "Output"
_SHARED, _CLOSED = 0o755, 0o700
#: For trying whether root can give a folder away.
_NOBODY = 65534
_OTHERS_PASS = stat.S_IXGRP | stat.S_IXOTH
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


def make_own(folder: Path, name: str, uid: int, gid: int) -> None:
    """`folder`: `Output/USER` in full, of the account `name`. Raises NotPossible where it is there
    and is not the account's."""
    with suppress(OSError):  # what root may not do is left to the task
        output = _open(folder.parent.parent)
        try:
            if not _is_there(output, folder.name):
                _give(output, folder.name, uid, gid)
            if (found := _what_else(output, folder.name, uid)) and _can_give(output, uid, gid):
                raise NotPossible(
                    f"{folder}, where the job would write, is {found} and not {name}'s (uid "
                    f"{uid}), so that others could read and exchange what it writes; ask whoever "
                    "runs the server to remove it"
                )
        finally:
            os.close(output)


def open_output(share: Path) -> tuple[str, ...]:
    """Make `Output` in it, if it is not there. What whoever starts the server has to know."""
    return tuple(_about(share)) if share.is_dir() else ()


def _about(share: Path) -> Iterator[str]:
    output, fail = share / OUTPUT, "OpenPAI's configs without an outputDir fail there"
    quoted = shlex.quote(str(output))
    yield from _about_names(share, share.stat())
    try:
        fd = _open(share)
    except OSError as error:
        yield (
            f"root cannot make or use {output} ({error.strerror}): it has to be a folder, and no "
            "link; where root may not make one, make it where the disk is, install -d -m 1777"
        )
        return
    try:
        found = os.fstat(fd)
        yield from _about_names(output, found)
        if found.st_uid != os.geteuid():
            yield (
                f"{output} is {_whose(found.st_uid)}, who can exchange members' folders in it, and "
                f"root makes none there: chown root {quoted}"
            )
        if not found.st_mode & _OTHERS_PASS:
            yield f"other accounts may not pass {output}, and {fail}: chmod 755 {quoted}"
        elif not _others_write(found) and not _can_give(fd, _NOBODY, _NOBODY):
            yield (
                f"neither root nor other accounts can make folders in {output}, and {fail}: "
                "chmod 1777, where its disk is"
            )
    finally:
        os.close(fd)


def _about_names(folder: Path, found: os.stat_result) -> Iterator[str]:
    if not _keeps_names(found):
        yield (
            f"others can write to {folder} (mode {stat.S_IMODE(found.st_mode):o}), and it has no "
            f"sticky bit: members can exchange each other's results in it. chmod +t "
            f"{shlex.quote(str(folder))}"
        )


def _open(share: Path) -> int:
    """`Output` in it, made if it is missing. Links on the way to the share are its admin's."""
    above = os.open(share, os.O_PATH | os.O_DIRECTORY)
    try:
        made = False
        if _keeps_names(os.fstat(above)):
            with suppress(FileExistsError):
                os.mkdir(OUTPUT, _SHARED, dir_fd=above)
                made = True
        output = os.open(OUTPUT, _FOLDER, dir_fd=above)
    finally:
        os.close(above)
    if made:
        with suppress(OSError):
            os.fchmod(output, _SHARED)  # whatever our mask is
    return output


def _keeps_names(found: os.stat_result) -> bool:
    """Whether nobody but its owner can move away what others have in this folder."""
    return not _others_write(found) or bool(found.st_mode & stat.S_ISVTX)


def _others_write(found: os.stat_result) -> bool:
    """Of root's group is no account."""
    group = stat.S_IWGRP if found.st_gid != 0 else 0
    return bool(found.st_mode & (group | stat.S_IWOTH))


def _is_there(parent: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _what_else(parent: int, name: str, uid: int) -> str:
    """What it is, where it is there and no folder of this account; else nothing."""
    try:
        found = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return ""
    if not stat.S_ISDIR(found.st_mode):
        return f"no folder but a file or link, {_whose(found.st_uid)}"
    return "" if found.st_uid == uid else _whose(found.st_uid)


def _whose(uid: int) -> str:
    with suppress(KeyError):
        return f"{pwd.getpwuid(uid).pw_name}'s (uid {uid})"
    return f"uid {uid}'s"


def _give(parent: int, name: str, uid: int, gid: int) -> bool:
    """Make this folder and have it be the account's. False: it cannot be made theirs here. Under
    another name until it is: whoever dies in between leaves nothing that is in anybody's way."""
    found = os.fstat(parent)
    if found.st_uid != os.geteuid() or not _keeps_names(found):
        return False
    fresh = f".regatta-{uuid.uuid4().hex}"
    os.mkdir(fresh, _CLOSED, dir_fd=parent)
    try:
        folder = os.open(fresh, _FOLDER, dir_fd=parent)
        try:
            os.fchmod(folder, _CLOSED)
            os.fchown(folder, uid, gid)
            given = os.fstat(folder).st_uid == uid
        finally:
            os.close(folder)
        if given:
            os.rename(fresh, name, src_dir_fd=parent, dst_dir_fd=parent)
        return given
    finally:
        with suppress(FileNotFoundError):
            os.rmdir(fresh, dir_fd=parent)


def _can_give(parent: int, uid: int, gid: int) -> bool:
    """Whether what is another's here really is: some shares say one owner of everything."""
    trial = f".regatta-{uuid.uuid4().hex}"
    try:
        if not _give(parent, trial, uid, gid):
            return False
        os.rmdir(trial, dir_fd=parent)
    except OSError:
        return False
    return True
