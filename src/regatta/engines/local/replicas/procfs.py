"""What /proc says about processes: who they are and what they use."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable

import msgspec

from regatta.engines.local.supervisor import claim
from regatta.engines.local.supervisor.groups import Group
from regatta.engines.local.supervisor.tree import below as _below

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def boot_id() -> str:
    return claim.boot_id()


def start_time(pid: int) -> int:
    """0 for a process that does not exist."""
    return claim.start_time(pid)


def boot_time() -> float:
    """When this machine started, in seconds since the epoch."""
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)


def below(pid: int, parent_of: dict[int, int]) -> list[int]:
    return _below(pid, parent_of)


#: Two readings tell what is used now when they are so far apart, in seconds.
SHORTEST, LONGEST = 0.2, 15.0


def comparable(before: float, now: float) -> bool:
    return SHORTEST <= now - before <= LONGEST


class Sample(msgspec.Struct, frozen=True):
    """Use of some processes at one moment."""

    at: float
    #: Processor seconds so far, by process.
    cpu_seconds: dict[int, float]
    memory_bytes: int

    def cpu_percent_since(self, before: Sample) -> float:
        """Of one core. Processes that ended in between are not counted; new ones are, in full."""
        used = sum(
            seconds - before.cpu_seconds.get(pid, 0.0) for pid, seconds in self.cpu_seconds.items()
        )
        return max(0.0, 100.0 * used / (self.at - before.at))


def sample_of_group(group: Group) -> Sample | None:
    """By the group's own counters, which know of everybody who was ever in it. None: it has
    none."""
    cpu, memory = group.cpu_seconds(), group.memory_used()
    if cpu is None:
        return None
    if memory is None:
        memory = sample(group.pids()).memory_bytes
    return Sample(time.monotonic(), {0: cpu}, memory)


def sample(pids: Iterable[int]) -> Sample:
    cpu: dict[int, float] = {}
    memory = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        cpu[pid] = (int(fields[11]) + int(fields[12])) / _TICKS
        memory += int(fields[21]) * _PAGE
    return Sample(time.monotonic(), cpu, memory)
