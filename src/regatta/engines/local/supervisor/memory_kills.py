"""Whether the kernel killed a replica for memory, and for which limit.

Where a group is killed as a whole (version 2), the end of its first process tells. Where the kernel
takes one process and leaves the others (version 1), what is left is of no use, but may go on and
even succeed: the group's counter is looked at while it runs, and at its end.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .groups import Group

#: How often the counter of a group that is not killed as a whole is looked at.
LOOK_SECONDS = 1.0
KILLED = 128 + _signal.SIGKILL


class MemoryKills:
    def __init__(self, group: Group) -> None:
        self._group = group
        self._kills = self._kills_here = 0
        self._next_look = 0.0
        #: Somebody in the group was killed, and others may run on.
        self.has_struck = False

    def begin(self) -> None:
        """Programs are about to be started; the group is there."""
        self._kills, self._kills_here = self._count(), kills_on_this_machine()
        self.has_struck = False

    def look(self, now: float) -> float | None:
        """See whether the kernel has struck, if it is time to; seconds until the next look."""
        if not self._group.loses_one_by_one:
            return None
        if now >= self._next_look:
            self.has_struck = self._count() > self._kills
            self._next_look = now + LOOK_SECONDS
        return self._next_look - now

    def judge(self, code: int) -> str:
        """A sentence where it was killed for memory; else nothing."""
        unharmed = code == 0 and not self._group.loses_one_by_one
        if unharmed or self._count() <= self._kills:
            return ""
        if self._group.has_met_its_limit():
            return f"killed for memory: it used its limit of {quantity(self._group.memory_bytes)}"
        if self._group.out_of_memory_kills() is not None:
            return "killed for memory: the machine, or what it gives to jobs, had none left"
        if code == KILLED:
            return "killed, perhaps for memory: the machine had none left while it ran"
        return ""

    def judge_container(self, process: dict[str, Any], code: int) -> str:
        """Likewise for one that is not removed yet."""
        kernel_killed = kills_on_this_machine() > self._kills_here
        if code == 0 and not (kernel_killed and process["container"]["memory_limit"]):
            return ""
        from . import contained

        return contained.killed_for_memory(process, code, kernel_killed)

    def _count(self) -> int:
        """The group's own. Without one the machine's, which may have struck elsewhere."""
        kills = self._group.out_of_memory_kills()
        return kills_on_this_machine() if kills is None else kills


def quantity(amount: int) -> str:
    for suffix, scale in (("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10)):
        if amount % scale == 0:
            return f"{amount // scale}{suffix}"
    return str(amount)


def kills_on_this_machine() -> int:
    """How often the kernel has killed for memory since it started, in any group."""
    try:
        with open("/proc/vmstat", encoding="ascii") as file:
            for line in file:
                if line.startswith("oom_kill "):
                    return int(line.split()[1])
    except OSError:
        pass
    return 0
