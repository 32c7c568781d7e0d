"""Ends what a run left behind, and tells what even that leaves.

`left.json` in a run's folder names processes that did not die of SIGKILL, with their start times:
the supervisor writes it, or whoever swept the run after it.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import msgspec

from regatta.engines.local.replicas import runspec
from regatta.engines.local.replicas.hierarchies import group_of
from regatta.engines.local.replicas.procfs import start_time
from regatta.engines.local.replicas.runspec import LEFT_FILE, RUN_FILE
from regatta.engines.local.supervisor import freezer, tree
from regatta.engines.local.supervisor.groups import Group
from regatta.engines.local.supervisor.marks import LEAST, Marks, largest

_read_left = msgspec.json.Decoder(dict[str, int]).decode


class _Run(msgspec.Struct):
    """What finds and ends a run's processes, of run.json. An older release wrote neither."""

    group: runspec.Group = runspec.Group()
    mark: int = 0


_read_run = msgspec.json.Decoder(_Run).decode


def mark_of(run_id: str) -> int:
    """The number that its processes carry; 0: none."""
    most = largest()
    if not most:
        return 0
    number = int.from_bytes(hashlib.sha256(run_id.encode()).digest()[:8], "big")
    return LEAST + number % (most - LEAST)


def group_in(folder: Path) -> Group:
    """The run's control group, without limits to set; of no folders where it has none."""
    return Group(list(_run(folder).group.folders))


def end_leftovers(run_id: str, folder: Path, supervisor: int | None, patience: float | None) -> int:
    """Kill all who are in the run's group or carry a mark, but its supervisor; how many there were.
    The group goes, too. Who does not die of it in time is noted in the folder."""
    run = _run(folder, run_id)
    group = Group(list(run.group.folders))
    marks = Marks(run_id, run.mark, spare=supervisor or 0)

    def catch(held: set[int]) -> bool:
        return marks.catch(held) or (not marks.are_inherited and _catch_children(held))

    patience = tree.UNKILLABLE_SECONDS if patience is None else patience
    met, left = tree.end(catch, group, time.monotonic() + patience)
    group.remove()
    if left:
        _note_left(folder, left)
    return len(met)


def _run(folder: Path, run_id: str = "") -> _Run:
    """Of one whose folder somebody removed, what its id tells."""
    try:
        return _read_run((folder / RUN_FILE).read_bytes())
    except (OSError, msgspec.DecodeError):
        if not run_id:
            return _Run()
        return _Run(group=runspec.Group(folders=group_of(run_id)), mark=mark_of(run_id))


def _note_left(folder: Path, pids: Iterable[int]) -> None:
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
