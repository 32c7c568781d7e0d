"""Who has the names by which port blocks and GPUs are kept apart (`runspec.Hold`).

Any process of the machine can take such a name. A supervisor takes one for the ports of its
replica; what takes many keeps everybody's jobs from starting, and whoever waits is told which
process that is, so that somebody can end it.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

from regatta.api.checks.suggestions import readable

_PROC = Path("/proc")


def about_holders(names: Collection[str], least: int = 1, proc: Path = _PROC) -> str:
    """To stand behind a sentence on what is waited for: the process that has most of these names,
    where it has `least`; empty where none has, or we may not know."""
    inodes = dict(_taken(names, proc))
    held = Counter(pid for pid, inode in _sockets(proc) if inode in inodes) if inodes else None
    if not held:
        return ""
    pid, count = held.most_common(1)[0]
    if count < least:
        return ""
    many = f"{count:,} of them" if count > 1 else "it"
    return f"; process {pid}{_who(proc / str(pid))} holds {many}"


def _taken(names: Collection[str], proc: Path) -> Iterator[tuple[str, str]]:
    """By inode."""
    wanted = set(names)
    with suppress(OSError):
        for line in (proc / "net/unix").read_text("utf-8", "replace").splitlines():
            fields = line.split()
            if len(fields) == 8 and fields[7][:1] == "@" and fields[7][1:] in wanted:
                yield fields[6], fields[7][1:]


def _sockets(proc: Path) -> Iterator[tuple[int, str]]:
    """Of the processes that we may look into."""
    for pid in filter(str.isdecimal, os.listdir(proc)):
        with suppress(OSError):
            for entry in os.scandir(proc / pid / "fd"):
                with suppress(OSError):
                    target = os.readlink(entry.path)
                    if target.startswith("socket:["):
                        yield int(pid), target[8:-1]


def _who(process: Path) -> str:
    """A process calls itself whatever it likes, and others read it in their terminals."""
    try:
        name = (process / "comm").read_text("utf-8", "replace").strip()
        return f" ({readable(name)}, uid {process.stat().st_uid})"
    except OSError:
        return ""
