"""Removes folders beside all other work: those that an account's programs may still be writing to.

How long that takes is their choice, who may make folders faster than these are removed; nobody is
to wait for it. So such a folder gets a name that nobody asks for, at once, and goes when it can.
Whoever comes after a process that was killed meanwhile finds it again by that name.
"""

from __future__ import annotations

import errno
import logging
import threading
import time
import uuid
from collections import deque
from pathlib import Path

from regatta.engines.local.replicas.removing import remove_tree

_NAME = ".gone-"
#: Seconds for one folder, before another has its turn.
TURN = 5.0
#: Between two turns of one that is still being written to.
PAUSE = 1.0

log = logging.getLogger(__name__)


class _Remover:
    """One thread, that ends when there is nothing left to do."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._waiting: deque[Path] = deque()
        self._works = False

    def add(self, folder: Path) -> None:
        with self._turn:
            self._waiting.append(folder)
            if not self._works:
                self._works = True
                threading.Thread(target=self._work, name="regatta-removing", daemon=True).start()

    def _work(self) -> None:
        while (folder := self._next()) is not None:
            failure = remove_tree(folder, TURN)
            if failure is None:
                continue
            if failure.errno in (errno.ETIMEDOUT, errno.ENOTEMPTY):
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
    aside = folder.with_name(f"{_NAME}{uuid.uuid4()}")
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
    for folder in parent.glob(f"{_NAME}*"):
        _remover.add(folder)
