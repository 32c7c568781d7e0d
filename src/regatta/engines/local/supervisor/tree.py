"""Finds and ends processes: those below one, those in a group, those that carry a run's mark."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import os
import resource
import time

from . import freezer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .groups import Group
    from .marks import Marks

#: Between two looks at who is still there.
LONGEST_PAUSE = 0.05
#: A process that has not died of SIGKILL by then sits in the kernel (a dead NFS server, say).
UNKILLABLE_SECONDS = 10.0


def parents() -> dict[int, int]:
    """The parent of every process that lives."""
    found: dict[int, int] = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (fields := _living(name)):
            found[int(name)] = int(fields[1])
    return found


def lives(pid: int) -> bool:
    """It is there, and not just waiting to be collected."""
    return bool(_living(str(pid)))


def is_halted(pid: int) -> bool:
    """By SIGSTOP, or by who traces it."""
    return _living(str(pid))[:1] in ([b"T"], [b"t"])


def _living(pid: str) -> list[bytes]:
    """Fields of its stat from the state on; none of one that is dead."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The command name may hold spaces and brackets: fields start after the last.
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return []
    # One whose first thread has ended looks like a zombie while its other threads run on.
    return [] if fields[0] in (b"Z", b"X") and int(fields[17]) <= 1 else fields


def below(root: int, parent_of: dict[int, int]) -> list[int]:
    children: dict[int, list[int]] = {}
    for pid, parent in parent_of.items():
        children.setdefault(parent, []).append(pid)
    found, todo = [], [root]
    while todo:
        for child in children.get(todo.pop(), ()):
            found.append(child)
            todo.append(child)
    return found


def _children() -> list[int]:
    """Of this process; none where the kernel does not list them."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


def kill(pid: int, signal: int) -> None:
    try:  # noqa: SIM105 - contextlib is not worth its import here
        os.kill(pid, signal)
    except (ProcessLookupError, PermissionError):
        pass


def hold(pid: int) -> None:
    """It forks no more, and does nothing."""
    try:  # noqa: SIM105 - contextlib is not worth its import here
        resource.prlimit(pid, resource.RLIMIT_NPROC, (0, 0))
    except (OSError, ValueError):
        pass
    kill(pid, _signal.SIGSTOP)


def end(
    catch: Callable[[set[int]], bool], group: Group, deadline: float
) -> tuple[set[int], set[int]]:
    """Kill all in the group and all whom `catch` adds to those it holds, until it says that there
    is nobody else; who they were, and who of them did not die of it in time.

    The group is killed at one blow. Others are held first, until no new one turns up: killing one
    of many that fork on and on would only make room for the next.
    """
    met: set[int] = set()
    pause = 0.001
    while time.monotonic() < deadline:
        struck = group.kill()
        held: set[int] = set()
        while catch(held) and time.monotonic() < deadline:
            pass
        if not struck and not held:
            break
        for pid in held:
            kill(pid, _signal.SIGKILL)
        if pause == LONGEST_PAUSE:  # dying takes nobody so long who can
            for pid in (struck | held) & met:
                freezer.release(pid)
        met |= struck | held
        time.sleep(pause)
        pause = min(pause * 2, LONGEST_PAUSE)
    else:
        return met, {pid for pid in met if lives(pid)}
    return met, set()


def end_children(marks: Marks, group: Group, subreaper: bool) -> tuple[dict[int, int], set[int]]:
    """End everything that this process ever started; wait statuses by pid, and who did not die.

    As a subreaper we inherit every orphan, so `no child left` means that nobody is. Without it
    orphans went to init, and only their marks tell them.
    """
    statuses: dict[int, int] = {}

    def catch(held: set[int]) -> bool:
        fresh: set[int] = set()
        while _collect(statuses) and time.monotonic() < deadline:
            for pid in _children():
                hold(pid)  # before anything that takes longer
            seen = set(below(os.getpid(), parents()))
            fresh = seen - held
            if seen:  # otherwise the one that was there has just made way for the next
                break
        for pid in fresh:
            hold(pid)
        held |= fresh
        return bool(fresh) or (not subreaper and marks.catch(held))

    deadline = time.monotonic() + UNKILLABLE_SECONDS
    _, left = end(catch, group, deadline)
    while _collect(statuses) and time.monotonic() < deadline:
        time.sleep(0.001)  # the last of them is dead, but not yet ours to collect
    return statuses, left


def _collect(statuses: dict[int, int]) -> bool:
    """Reap what has ended; whether any child is left."""
    try:
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return True
            statuses[pid] = status
    except ChildProcessError:
        return False
