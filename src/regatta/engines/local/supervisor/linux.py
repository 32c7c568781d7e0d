"""The few system calls that Python does not offer."""

from __future__ import annotations

import ctypes
import errno
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PR_SET_DUMPABLE = 4
PR_SET_NAME = 15
PR_CAPBSET_DROP = 24
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_CLEAR_ALL = 4
CAPABILITY_VERSION_3 = 0x20080522
CAP_SETGID, CAP_SETUID, CAP_SETPCAP, CAP_SYS_ADMIN = 6, 7, 8, 21
CLONE_NEWNS = 0x00020000
CLONE_NEWUSER = 0x10000000
MS_RDONLY = 1
MS_REMOUNT = 32
MS_BIND = 4096
MS_REC = 16384
MS_PRIVATE = 1 << 18
MNT_DETACH = 2
FALLOC_FL_KEEP_SIZE = 1
#: One of those that have the same number on every kind of processor that Paddle runs on.
SYS_OPENAT2 = 437
AT_FDCWD = -100
RESOLVE_NO_MAGICLINKS = 2

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


def reach_files_as(account: dict[str, Any]) -> None:
    """From now on this process opens, makes and passes what the account may, and nothing else; of
    root's other rights it keeps to mount, and to become the account. `become` has to follow."""
    os.setgroups(account["groups"])
    _libc.setfsgid(ctypes.c_uint(account["gid"]))
    _libc.setfsuid(ctypes.c_uint(account["uid"]))
    # These calls say who it was before, not whether they worked; asked for nobody, they say it.
    nobody = ctypes.c_uint(0xFFFFFFFF)
    reached = (_libc.setfsuid(nobody) & 0xFFFFFFFF, _libc.setfsgid(nobody) & 0xFFFFFFFF)
    if reached != (account["uid"], account["gid"]):
        raise OSError(errno.EPERM, "the account's files cannot be reached as that account")
    _use_only(CAP_SETGID, CAP_SETUID, CAP_SETPCAP, CAP_SYS_ADMIN)


def _use_only(*capabilities: int) -> None:
    """Of those that it uses now. Whom a file belongs to is not all that the kernel asks: who may
    look into any process would pass `/proc/PID/cwd` of another account's, too."""
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
    held = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable; then the upper 32 of each
    _check(_libc.capget(ctypes.byref(header), ctypes.byref(held)), "capget")
    held[0] &= sum(1 << capability for capability in capabilities)
    held[3] = 0
    _check(_libc.capset(ctypes.byref(header), ctypes.byref(held)), "capset")


def pin(path: str) -> int:
    """A descriptor of what is there, not of what is in it. The links of `/proc` that lead to what a
    process has open, such as ours, are not followed, where the kernel (5.6) lets us say so."""
    how = (ctypes.c_uint64 * 3)(os.O_PATH | os.O_CLOEXEC, 0, RESOLVE_NO_MAGICLINKS)
    name = ctypes.c_char_p(os.fsencode(path))
    size = ctypes.c_size_t(ctypes.sizeof(how))
    at = ctypes.c_long(AT_FDCWD)
    fd: int = _libc.syscall(ctypes.c_long(SYS_OPENAT2), at, name, ctypes.byref(how), size)
    if fd >= 0:
        return fd
    number = ctypes.get_errno()
    if number in (errno.ENOSYS, errno.EPERM):  # EPERM: of a container that knows no such call
        return os.open(path, os.O_PATH)
    if number == errno.ELOOP:
        raise OSError(number, "it leads in a circle, or through what a process has open", path)
    raise OSError(number, os.strerror(number), path)


def become(account: dict[str, Any]) -> None:
    """This process is the account's for good: nothing it starts gets any other rights again, not
    by a program that gives its owner's. Again it changes nothing."""
    if os.getresuid() == (account["uid"],) * 3:
        return
    _check(_libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    last = 0
    while _libc.prctl(PR_CAPBSET_DROP, last, 0, 0, 0) == 0:
        last += 1  # until the kernel knows no more of them
    _libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    os.setgroups(account["groups"])
    os.setresgid(account["gid"], account["gid"], account["gid"])
    os.setresuid(account["uid"], account["uid"], account["uid"])
    # What a process hands on to programs survives a change of user, and where a system keeps its
    # capabilities through one, so do the others.
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
    _check(_libc.capset(ctypes.byref(header), ctypes.byref((ctypes.c_uint32 * 6)())), "capset")


def may_write_own_maps() -> None:
    """Who has changed its user may not write what /proc has of it, until it says so."""
    _libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)


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
