"""Ends what a run left behind, and tells what even that leaves.

`left.json` in a run's folder names processes that did not die of SIGKILL, with their start times:
the supervisor writes it, or whoever swept the run after it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import msgspec

from regatta.engines.local.replicas.procfs import start_time
from regatta.engines.local.replicas.runspec import LEFT_FILE
from regatta.engines.local.supervisor import freezer, tree
from regatta.engines.local.supervisor.groups import Group
from regatta.engines.local.supervisor.marks import Marks

_read_left = msgspec.json.Decoder(dict[str, int]).decode


def end_leftovers(marks: Marks, group: Group, patience: float) -> tuple[set[int], set[int]]:
    """Kill all who are in the group or carry a mark; who there was, and who did not die of it in
    time. The group goes, too."""

    def catch(held: set[int]) -> bool:
        return marks.catch(held) or (not marks.are_inherited and _catch_children(held))

    met, left = tree.end(catch, group, time.monotonic() + patience)
    group.remove()
    return met, left


def note_left(folder: Path, pids: Iterable[int]) -> None:
    """For whoever deletes the job, perhaps another server."""
    with suppress(OSError):
        left = {str(pid): start_time(pid) for pid in pids}
        (folder / LEFT_FILE).write_bytes(msgspec.json.encode(left))


def left_of(folder: Path) -> list[int]:
    """The processes of this run that outlived its end, and live still."""
    try:
        left = _read_left((folder / LEFT_FILE).read_bytes())
    except (OSError, msgspec.MsgspecError):
        return []
    return [
        int(pid)
        for pid, started in left.items()
        if pid.isdigit() and tree.lives(int(pid)) and start_time(int(pid)) == started
    ]


def runs_with_left(job_folder: Path) -> list[Path]:
    return [file.parent for file in job_folder.glob(f"pods/*/runs/*/{LEFT_FILE}")]


def in_words(pids: Iterable[int]) -> str:
    """Who did not end, and what keeps them; empty for nobody."""
    return "; ".join(f"process {pid} {_why(pid)}" for pid in pids)


def _why(pid: int) -> str:
    name, wchan = _line(pid, "comm"), _line(pid, "wchan")
    if folder := freezer.frozen_in(pid):
        why = f"it is frozen by control group {folder}"
    elif wchan not in ("", "0"):
        why = f"it is in the kernel ({wchan})"
    else:
        why = "the kernel does not say why"
    return f"({name}) has not died of SIGKILL: {why}"


def _line(pid: int, file: str) -> str:
    with suppress(OSError):
        return os.fsdecode(Path(f"/proc/{pid}/{file}").read_bytes()).strip()
    return ""


def _catch_children(held: set[int]) -> bool:
    parent_of = tree.parents()
    fresh = {child for pid in held for child in tree.below(pid, parent_of)} - held
    for pid in fresh:
        tree.hold(pid)
    held |= fresh
    return bool(fresh)
