"""Finds and ends processes: those below one, and those that carry a run's mark."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import os
import time

#: A process that has not died of SIGKILL by then sits in the kernel (a dead NFS server, say).
UNKILLABLE_SECONDS = 10.0


def parents() -> dict[int, int]:
    """Every process's parent."""
    return _everybodys(1)


def sessions() -> dict[int, int]:
    """The session that every process is in: the pid of who began it."""
    return _everybodys(3)


def _everybodys(field: int) -> dict[int, int]:
    found: dict[int, int] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    # The command name may hold spaces and brackets: fields start after the last.
                    found[int(name)] = int(file.read().rpartition(b")")[2].split()[field])
            except (OSError, IndexError):
                continue
    return found


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


def marked(run_id: str) -> list[int]:
    """Processes whose environment says that they belong to the run."""
    mark = b"\0REGATTA_RUN=" + run_id.encode() + b"\0"
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            try:
                with open(f"/proc/{name}/environ", "rb") as file:
                    if mark in b"\0" + file.read() + b"\0":
                        found.append(int(name))
            except OSError:
                continue
    return found


def kill(pid: int, signal: int) -> None:
    try:  # noqa: SIM105 - contextlib is not worth its import here
        os.kill(pid, signal)
    except (ProcessLookupError, PermissionError):
        pass


def end_children(run_id: str, subreaper: bool) -> dict[int, int]:
    """SIGKILL everything below this process until nothing is left; wait statuses by pid.

    As a subreaper we inherit every orphan, so `no child left` means that nobody is. Without it
    orphans went to init, and only their mark tells them.
    """
    statuses: dict[int, int] = {}
    deadline, pause = time.monotonic() + UNKILLABLE_SECONDS, 0.001
    while time.monotonic() < deadline:
        if not _collect(statuses):
            break
        for pid in below(os.getpid(), parents()):
            kill(pid, _signal.SIGKILL)
        time.sleep(pause)
        pause = min(pause * 2, 0.05)
    if not subreaper:
        for pid in marked(run_id):
            kill(pid, _signal.SIGKILL)
    return statuses


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
