"""Removes folders that programs wrote into, whatever they made of them, or may be making still.

A program may leave folders that not even their owner may list or write to, and chains of folders
longer than any call stack. Links are removed, never followed: every step goes by the descriptor of
the folder it is in.

How long that takes where a program still makes folders is its choice, and nobody is to wait for it:
such a folder gets a name that nobody asks for, at once, and goes beside all other work. Whoever
comes after a process that was killed meanwhile finds it again by that name.
"""

from __future__ import annotations

import errno
import logging
import math
import os
import threading
import time
import uuid
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path

#: Folders deeper than this are moved up before they are looked into.
DEEPEST = 64
#: As many entries of a folder are known at a time: a program may make them as fast as we list them.
AT_ONCE = 20_000
_FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW
_OWNERS = 0o700
#: How one is called that is removed later.
_GONE = ".gone-"
#: Seconds for one folder, before another has its turn.
TURN = 5.0
#: Before the next turn of one that was still being written to.
PAUSE = 1.0
#: What keeps a folder for a while only: it is written to still, or this process has too much open.
_PASSES = frozenset(
    {errno.ETIMEDOUT, errno.ENOTEMPTY, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOSPC}
)

log = logging.getLogger(__name__)


def remove_tree(folder: Path, seconds: float = math.inf) -> OSError | None:
    """What keeps it from being removed, by its full path; None: it is gone. It is ETIMEDOUT where
    there was more than can be removed in that time."""
    removal = _Removal(time.monotonic() + seconds)
    with removal.noting(str(folder.parent)):
        parent = os.open(folder.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            removal.remove(parent, folder.name, str(folder))
        finally:
            os.close(parent)
    return removal.failure


class _Removal:
    def __init__(self, until: float) -> None:
        self._until = until
        #: The first: what follows from it says less.
        self.failure: OSError | None = None
        self._moved_up = False

    def remove(self, parent: int, name: str, path: str) -> None:
        with self.noting(path):
            top = _enter(parent, name)
            try:
                self._empty(top, path, top, 0)
                while self._moved_up and self.failure is None:
                    self._moved_up = False
                    self._empty(top, path, top, 0)
            finally:
                os.close(top)
            os.rmdir(name, dir_fd=parent)

    @contextmanager
    def noting(self, path: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            pass  # somebody else has removed it
        except OSError as error:
            if self.failure is None:
                self.failure = OSError(error.errno, error.strerror, path)

    def _empty(self, folder: int, path: str, top: int, depth: int) -> None:
        while self._empty_some(folder, path, top, depth):
            pass

    def _empty_some(self, folder: int, path: str, top: int, depth: int) -> bool:
        """Whether there is more than was listed at once, and some of that is gone."""
        with os.scandir(folder) as listed:
            some = islice(listed, AT_ONCE)
            entries = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in some]
        gone = 0
        for name, is_folder in entries:
            if time.monotonic() > self._until:
                with self.noting(path):
                    raise OSError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))
                return False
            with self.noting(f"{path}/{name}"):
                if not is_folder:
                    os.unlink(name, dir_fd=folder)
                elif depth < DEEPEST:
                    self._remove_inner(folder, name, f"{path}/{name}", top, depth)
                else:
                    os.close(_enter(folder, name))  # moving a folder takes the right to write in it
                    os.rename(name, f".{uuid.uuid4()}", src_dir_fd=folder, dst_dir_fd=top)
                    self._moved_up = True
                gone += 1
        return gone > 0 and len(entries) == AT_ONCE

    def _remove_inner(self, parent: int, name: str, path: str, top: int, depth: int) -> None:
        inner = _enter(parent, name)
        try:
            self._empty(inner, path, top, depth + 1)
        finally:
            os.close(inner)
        os.rmdir(name, dir_fd=parent)


def _enter(parent: int, name: str) -> int:
    """A descriptor of the folder, which its owner may then list and write to."""
    try:
        folder = os.open(name, os.O_RDONLY | _FOLDER, dir_fd=parent)
    except PermissionError:
        # May not be listed: opened by name only, and its mode changed through that.
        closed = os.open(name, os.O_PATH | _FOLDER, dir_fd=parent)
        try:
            os.chmod(f"/proc/self/fd/{closed}", _OWNERS)
        finally:
            os.close(closed)
        return os.open(name, os.O_RDONLY | _FOLDER, dir_fd=parent)
    if os.fstat(folder).st_mode & _OWNERS != _OWNERS:
        with suppress(OSError):  # another's: then what is in it tells
            os.fchmod(folder, _OWNERS)
    return folder


class _Remover:
    """One thread, that ends when there is nothing left to do."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._waiting: deque[Path] = deque()
        self._works = False

    def add(self, folder: Path) -> None:
        with self._turn:
            self._waiting.append(folder)
            if self._works:
                return
            thread = threading.Thread(target=self._work, name="regatta-removing", daemon=True)
            try:
                thread.start()
            except RuntimeError as error:  # as many as there may be: it goes with the next folder
                log.warning("a folder of a job that is gone stays for now: %s (%s)", folder, error)
            else:
                self._works = True

    def _work(self) -> None:
        while (folder := self._next()) is not None:
            try:
                failure = remove_tree(folder, TURN)
            except Exception:  # our own mistake: the others are to go all the same
                log.exception("a folder of a job that is gone stays: %s", folder)
                continue
            if failure is None:
                continue
            if failure.errno in _PASSES:
                time.sleep(PAUSE)
                self.add(folder)
            else:
                log.warning("a folder of a job that is gone stays: %s", failure)

    def _next(self) -> Path | None:
        with self._turn:
            if not self._waiting:
                self._works = False
                return None
            return self._waiting.popleft()


_remover = _Remover()


def remove_later(folder: Path) -> OSError | None:
    """It is gone from its place. Else, what keeps it there."""
    aside = folder.with_name(f"{_GONE}{uuid.uuid4()}")
    try:
        folder.rename(aside)
    except FileNotFoundError:
        return None
    except OSError:  # such as on a disk that is full
        return remove_tree(folder)
    _remover.add(aside)
    return None


def go_on_removing(parent: Path) -> None:
    """With those in there that a process before this one left."""
    for folder in parent.glob(f"{_GONE}*"):
        _remover.add(folder)
