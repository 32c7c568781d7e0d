"""Gives one process its own view of the file system, before it becomes the user's program.

As root a private mount namespace is enough, also for an account that root plays for: files are then
reached as that account, so that nothing is shown, made or covered that it may not have. Anybody
else gets a user namespace around it in which they stay who they are. Mount points that do not exist
are made. Where the first missing folder would stand in `/` itself, it is made in a private copy of
the root (a tmpfs with everything bound into it) and the machine's own `/` stays clean; so it is in
a folder that one may not write to. Anywhere else an empty folder stays behind, because removing it
would pull the mount from under another replica that uses the same path.
"""

from __future__ import annotations

import errno
import os

from . import linux

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class CannotMount(Exception):
    pass


def apply(mounts: list[dict[str, Any]], account: dict[str, Any] | None = None) -> None:
    """Called in the child between fork and exec. For an account, after `linux.reach_files_as`."""
    owner = f",uid={account['uid']},gid={account['gid']}" if account else ""
    within = account["folders"] if account else None
    try:
        _enter_namespace(account)
        if any(_stands_in_root(mount["target"]) for mount in mounts):
            _copy_root(owner)
    except OSError as error:
        raise CannotMount(_sentence(mounts[0], error, account)) from None
    for mount in mounts:  # parents come before what is mounted inside them
        try:
            source = mount["source"]
            if account:
                source = _pinned(source, within)
            _bind(source, mount["target"], mount["read_only"], owner)
        except OSError as error:
            raise CannotMount(_sentence(mount, error, account)) from None


def _sentence(mount: dict[str, Any], error: OSError, account: dict[str, Any] | None) -> str:
    volume = mount["volume"] or "name"
    said = f"cannot show {mount['source']} at {mount['target']}: {error.strerror}; "
    if account:  # no option of whoever sent the job helps here
        return f"{said}name a mountPath that is there, or ask whoever runs the server"
    return (
        f"{said}`--volume {volume}={mount['target']}` uses a folder that is already there instead"
    )


def _pinned(source: str, within: list[str] | None) -> str:
    """The same by descriptor: what is looked at is what is mounted, whoever lays the way anew.
    `within`: folders of which it has to be one, or to lie in one. Where it leads is not told: that
    is for the account to look at, with its own rights."""
    fd = linux.pin(source)
    pinned = f"/proc/self/fd/{fd}"
    if within is not None:
        found = os.readlink(pinned)
        allowed = [os.path.realpath(folder).rstrip("/") for folder in within]
        if not any(found == folder or found.startswith(folder + "/") for folder in allowed):
            raise OSError(errno.EACCES, "it leads out of the folders that the server allows")
    return pinned


def _enter_namespace(account: dict[str, Any] | None) -> None:
    uid, gid = os.getuid(), os.getgid()
    if uid == 0:
        try:
            linux.unshare(linux.CLONE_NEWNS)
        except PermissionError:  # root in a container without CAP_SYS_ADMIN
            if account:
                uid, gid = account["uid"], account["gid"]
                linux.become(account)
                linux.may_write_own_maps()
            _enter_user_namespace(uid, gid)
    else:
        _enter_user_namespace(uid, gid)
    linux.mount("none", "/", flags=linux.MS_REC | linux.MS_PRIVATE)


def _enter_user_namespace(uid: int, gid: int) -> None:
    linux.unshare(linux.CLONE_NEWUSER | linux.CLONE_NEWNS)
    for name, line in (
        ("setgroups", "deny"),
        ("uid_map", f"{uid} {uid} 1"),
        ("gid_map", f"{gid} {gid} 1"),
    ):
        # Not as text: the codec may lie where this user cannot read.
        file = os.open(f"/proc/self/{name}", os.O_WRONLY)
        os.write(file, line.encode())
        os.close(file)


def _stands_in_root(target: str) -> bool:
    return not os.path.lexists("/" + target.strip("/").partition("/")[0])


def _copy_root(owner: str) -> None:
    """A tmpfs in which every entry of `/` is bound, as the new `/`."""
    new = "/tmp"
    entries = sorted(os.listdir("/"))
    old = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    linux.mount("tmpfs", new, "tmpfs", data="mode=755" + owner)
    os.chdir(new)
    # `/tmp` is covered by now: what lies below is reached through the descriptor of the old root.
    os.mkdir(".old")
    linux.mount(f"/proc/self/fd/{old}", ".old", flags=linux.MS_BIND | linux.MS_REC)
    linux.detach(".old/tmp") if os.path.ismount(".old/tmp") else None
    for entry in entries:
        _show(".old/" + entry, entry)
    linux.detach(".old")
    os.rmdir(".old")
    linux.pivot_root(".", ".")
    linux.detach(".")
    os.close(old)
    os.chdir("/")


def _copy_folder(folder: str, owner: str) -> None:
    """A tmpfs over the folder, in which every entry of it is bound."""
    entries = sorted(os.listdir(folder))
    old = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    linux.mount("tmpfs", folder, "tmpfs", data="mode=755" + owner)
    for entry in entries:
        # What is covered by now is reached through the descriptor.
        _show(f"/proc/self/fd/{old}/{entry}", f"{folder}/{entry}")
    os.close(old)


def _show(source: str, entry: str) -> None:
    """One entry of a folder in the folder's copy."""
    if os.path.islink(source):
        os.symlink(os.readlink(source), entry)
    elif os.path.isdir(source):
        os.mkdir(entry)
        linux.mount(source, entry, flags=linux.MS_BIND | linux.MS_REC)
    else:
        os.close(os.open(entry, os.O_CREAT | os.O_WRONLY))
        linux.mount(source, entry, flags=linux.MS_BIND)


def _make_point(source: str, target: str) -> None:
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    elif not os.path.lexists(target):
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY))


def _nearest_folder(path: str) -> str:
    while not os.path.isdir(path):
        path = os.path.dirname(path)
    return os.path.realpath(path)


def _bind(source: str, target: str, read_only: bool, owner: str) -> None:
    try:
        _make_point(source, target)
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise
        _copy_folder(_nearest_folder(target), owner)
        _make_point(source, target)
    linux.mount(source, target, flags=linux.MS_BIND | linux.MS_REC)
    if read_only:
        # A bind ignores read-only; and flags that the source has may not be dropped in a user
        # namespace, so they are said again.
        kept = os.statvfs(target).f_flag & ~linux.MS_RDONLY & 0xF
        linux.mount("none", target, flags=linux.MS_BIND | linux.MS_REMOUNT | linux.MS_RDONLY | kept)
