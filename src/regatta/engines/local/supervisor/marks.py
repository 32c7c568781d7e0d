"""How a run's processes are known, wherever they went.

Two marks. `REGATTA_RUN` in the environment, which a program may drop and a container keeps. And the
hard limit of RLIMIT_LOCKS, which Linux has not used since 2.4.25: a number of the run's own, handed
on through fork, exec, setsid and namespaces, that anybody but root can only lower. The supervisor
carries it from before its first fork, so there is no moment at which a process has none.
"""

from __future__ import annotations

import os
import resource

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
    def __init__(self, run_id: str, number: int) -> None:
        self._variable = b"\0REGATTA_RUN=" + run_id.encode() + b"\0"
        self._number = str(number).encode() if number else b""
        self._strangers: set[str] = set()
        self._looks = 0

    def find(self) -> set[int]:
        """Everybody but this process; none only if there is none.

        One that forks and ends, and whose child does the same, is gone whenever it is looked at.
        So a look at which somebody unknown vanished proves nothing, and is repeated.
        """
        for _ in range(MOST_LOOKS):
            found, sure = self._look()
            if found or sure:
                return found
        return set()

    def _look(self) -> tuple[set[int], bool]:
        if self._looks % LOOKS_BEFORE_ANEW == 0:
            self._strangers = {str(os.getpid())}
        self._looks += 1
        found, sure = set(), True
        for name in os.listdir("/proc"):
            if name.isdigit() and name not in self._strangers:
                limits = _content(f"/proc/{name}/limits")
                if not limits:
                    sure = False
                elif self._is_on(name, limits):
                    found.add(int(name))
                else:
                    self._strangers.add(name)
        return found, sure

    def _is_on(self, pid: str, limits: bytes) -> bool:
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
