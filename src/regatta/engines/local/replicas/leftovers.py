"""Ends what a run left behind when its supervisor was killed."""

from __future__ import annotations

import time

from regatta.engines.local.supervisor import tree
from regatta.engines.local.supervisor.groups import Group
from regatta.engines.local.supervisor.marks import Marks


def end_leftovers(marks: Marks, group: Group) -> int:
    """Kill all who are in the group or carry a mark; how many there were. The group goes, too."""

    def catch(held: set[int]) -> bool:
        return marks.catch(held) or (not marks.are_inherited and _catch_children(held))

    ended = tree.end(catch, group, time.monotonic() + tree.UNKILLABLE_SECONDS)
    group.remove()
    return len(ended)


def _catch_children(held: set[int]) -> bool:
    parent_of = tree.parents()
    fresh = {child for pid in held for child in tree.below(pid, parent_of)} - held
    for pid in fresh:
        tree.hold(pid)
    held |= fresh
    return bool(fresh)
