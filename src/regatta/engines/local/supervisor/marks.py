"""How a run's processes are known, wherever they went.

Two marks. `REGATTA_RUN` in the environment, which a program may drop and a container keeps. And the
hard limit of RLIMIT_LOCKS, which Linux has not used since 2.4.25: a number of the run's own, handed
on through fork, exec, setsid and namespaces, that anybody but root can only lower. The supervisor
carries it from before its first fork, so there is no moment at which a process has none.
"""

from __future__ import annotations

import os
import resource

from . import tree

RLIMIT_LOCKS = 10
#: Below this a site's own limit could be meant.
LEAST = 1 << 32
MOST = 1 << 62
#: A number that was a stranger's is not looked at again, but numbers are given out anew.
LOOKS_BEFORE_ANEW = 50
#: On a machine where processes come and go all the time, looking has to have an end.
MOST_LOOKS = 500


def largest() -> int:
    """The largest mark that this process can hand on; 0: none."""
    hard = resource.getrlimit(RLIMIT_LOCKS)[1]
    if hard == resource.RLIM_INFINITY:
        return MOST
    return hard if hard > 2 * LEAST else 0


def carry(number: int) -> None:
    """From now on this process, and all that it starts, has the mark."""
    if number:
        try:  # noqa: SIM105 - contextlib is not worth its import here
            resource.setrlimit(RLIMIT_LOCKS, (number, number))
        except (OSError, ValueError):
            pass  # a system that forbids it: the environment has to do


class Marks:
    def __init__(self, run_id: str, number: int, spare: int = 0) -> None:
        self._variable = b"\0REGATTA_RUN=" + run_id.encode() + b"\0"
        self._number = str(number).encode() if number else b""
        self._spared = {os.getpid(), spare}
        self._strangers: set[int] = set()
        self._looks = 0

    @property
    def are_inherited(self) -> bool:
        """A child of one that has them has them, whatever it does."""
        return bool(self._number)

    def catch(self, held: set[int]) -> bool:
        """Hold everybody who has a mark, as soon as they are seen, and add them to those who are
        held already. False: nobody else has one.

        One that forks and ends, and whose child does the same, is gone whenever it is looked at.
        So a look at which somebody vanished proves nothing, and is repeated.
        """
        for _ in range(MOST_LOOKS):
            caught, sure = self._look(held)
            if caught or sure:
                return caught
        return False

    def _look(self, held: set[int]) -> tuple[bool, bool]:
        if self._looks % LOOKS_BEFORE_ANEW == 0:
            self._strangers = set(self._spared)
        self._looks += 1
        caught, sure = False, True
        known = self._strangers | held
        pids = [pid for name in os.listdir("/proc") if name.isdigit() and (pid := int(name))]
        for pid in sorted(set(pids) - known, reverse=True):  # the youngest are the quickest
            limits = _content(f"/proc/{pid}/limits")
            if limits and not self._is_on(pid, limits):
                self._strangers.add(pid)
                continue
            tree.hold(pid) if limits else None
            if limits and tree.lives(pid):
                held.add(pid)
                caught = True
            else:
                sure = False  # it has ended, perhaps after a fork
                self._strangers.add(pid)
        return caught, sure

    def _is_on(self, pid: int, limits: bytes) -> bool:
        if self._number and _lock_limit(limits) == self._number:
            return True
        return self._variable in b"\0" + _content(f"/proc/{pid}/environ") + b"\0"


def _lock_limit(limits: bytes) -> bytes:
    """The hard one, of a line as `Max file locks  <soft>  <hard>  locks`."""
    line = limits.partition(b"\nMax file locks")[2].partition(b"\n")[0]
    return (line.split() or [b"", b""])[1]


def _content(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""
