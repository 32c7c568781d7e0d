"""The few system calls that Python does not offer."""

from __future__ import annotations

import ctypes
import errno
import os

PR_SET_NAME = 15
PR_SET_CHILD_SUBREAPER = 36
CLONE_NEWNS = 0x00020000
CLONE_NEWUSER = 0x10000000
MS_RDONLY = 1
MS_REMOUNT = 32
MS_BIND = 4096
MS_REC = 16384
MS_PRIVATE = 1 << 18
MNT_DETACH = 2
FALLOC_FL_KEEP_SIZE = 1

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)


def become_subreaper() -> bool:
    """Orphans below us become our children instead of init's. False where there is no such call."""
    prctl = getattr(_libc, "prctl", None)
    if prctl is None:
        return False
    prctl(PR_SET_NAME, b"regatta-replica", 0, 0, 0)
    return bool(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)


def take_room(file: int, start: int, length: int) -> bool:
    """Have the disk set these bytes of a file aside, without making the file longer. False: it has
    no room. Where it cannot be asked for that, writing will tell."""
    fallocate = getattr(_libc, "fallocate64", None) or getattr(_libc, "fallocate", None)
    if fallocate is None:
        return True
    first, count = ctypes.c_int64(start), ctypes.c_int64(length)
    while fallocate(file, FALLOC_FL_KEEP_SIZE, first, count) != 0:
        number = ctypes.get_errno()
        if number != errno.EINTR:
            return number not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    return True


def unshare(flags: int) -> None:
    _check(_libc.unshare(flags), "unshare")


def mount(source: str, target: str, kind: str = "", flags: int = 0, data: str = "") -> None:
    _check(
        _libc.mount(
            os.fsencode(source),
            os.fsencode(target),
            os.fsencode(kind) or None,
            ctypes.c_ulong(flags),
            os.fsencode(data) or None,
        ),
        target,
    )


def detach(target: str) -> None:
    _check(_libc.umount2(os.fsencode(target), MNT_DETACH), target)


def pivot_root(new: str, old: str) -> None:
    _check(_libc.pivot_root(os.fsencode(new), os.fsencode(old)), new)
