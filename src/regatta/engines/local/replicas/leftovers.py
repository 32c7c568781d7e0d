"""Ends what a run left behind when its supervisor was killed.

Most of it carries the run's mark in its environment. A program that clears its environment does
not: it is found by the session that the supervisor gave it, and as a child of somebody found.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping

from regatta.engines.local.replicas.procfs import start_time
from regatta.engines.local.supervisor import tree

#: A process may fork while it is looked for.
LOOKS, PAUSE = 100, 0.005


def end_leftovers(run_id: str, sessions: Mapping[int, int]) -> int:
    """Kill them all; how many there were. `sessions`: start time of who began each, by pid."""
    leaders = {pid for pid, started in sessions.items() if started and start_time(pid) == started}
    for pid in leaders:
        tree.kill(pid, signal.SIGSTOP)
    killed: set[int] = set()
    for _ in range(LOOKS):
        found = {pid for pid in _find(run_id, leaders) if not _is_zombie(pid)}
        # Who began a session goes last: while it is there, its number cannot be another's.
        doomed = found - leaders or found
        if not doomed:
            break
        for pid in doomed:
            tree.kill(pid, signal.SIGKILL)
        if not found - leaders:
            leaders = set()
        killed |= doomed
        time.sleep(PAUSE)
    return len(killed)


def _find(run_id: str, leaders: set[int]) -> set[int]:
    found = leaders | set(tree.marked(run_id))
    found |= {pid for pid, session in tree.sessions().items() if session in leaders}
    parent_of = tree.parents()
    return found.union(*(tree.below(pid, parent_of) for pid in found)) - {os.getpid()}


def _is_zombie(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] in (b"Z", b"X")
    except OSError:
        return True
