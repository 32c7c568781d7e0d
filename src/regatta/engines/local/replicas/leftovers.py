"""Ends what a run left behind when its supervisor was killed."""

from __future__ import annotations

import os
import time

from regatta.engines.local.supervisor import tree
from regatta.engines.local.supervisor.groups import Group
from regatta.engines.local.supervisor.marks import MOST_LOOKS, Marks


def end_leftovers(marks: Marks, group: Group, spare: set[int | None]) -> int:
    """Kill all who are in the group, carry a mark, or were started by one that does; how many
    there were. The group goes, too."""

    def find() -> set[int]:
        for _ in range(MOST_LOOKS):
            marked = marks.find() - spare
            parent_of = tree.parents() if marked else {}
            found = marked.union(*(tree.below(pid, parent_of) for pid in marked))
            alive = found & parent_of.keys()
            # One that vanished meanwhile may have made way for the next.
            if alive or all(os.path.exists(f"/proc/{pid}") for pid in marked):
                return alive
        return set()

    ended = tree.end(find, group, time.monotonic() + tree.UNKILLABLE_SECONDS)
    group.remove()
    return len(ended)
