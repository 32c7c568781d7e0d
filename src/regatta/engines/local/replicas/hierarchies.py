"""Where on this machine control groups of our own may be made, if anywhere.

In order: below the server's own group, when that was handed to it (systemd's `Delegate=yes`, or
nobody else is in it); at the top of the hierarchy, as root; below the server's own group without
limits, when it may at least be written to. Version 2 gives no limits to groups beside processes, so
in the first case the server moves into a group at the edge. Groups that are not ours stay as they
are, whoever is in them.
"""

from __future__ import annotations

import functools
import os
import time
from contextlib import suppress
from pathlib import Path

import msgspec

from regatta.engines.local.replicas.procfs import below
from regatta.engines.local.supervisor import tree
from regatta.engines.local.supervisor.groups import offer_controllers

#: Runs are in the first, the server with its supervisors is in the second.
RUNS, SERVER = "regatta", "regatta.server"
#: Processes may be started in a group while others are moved out of it.
MOVES = 20
#: systemd says so of a group that it hands over; the second is for all to read.
DELEGATED = ("trusted.delegate", "user.delegate")
GUARDIAN = b"regatta.daemon.guardian"
ABANDONED_SECONDS = 600


class Hierarchy(msgspec.Struct, frozen=True, kw_only=True):
    #: Empty for version 2.
    controllers: frozenset[str] = frozenset()
    #: Where it is mounted: the top, as far as this process can see.
    top: str
    #: The group that this process is in, as a folder.
    own: str

    @property
    def is_version_2(self) -> bool:
        return not self.controllers


@functools.cache
def places() -> tuple[str, ...]:
    """Folders in which runs get theirs, one for each hierarchy that serves. Found once: after
    that this process may have moved."""
    try:
        mountinfo = Path("/proc/self/mountinfo").read_text()
        cgroup = Path("/proc/self/cgroup").read_text()
    except OSError:  # a kernel without them
        return ()
    return choose(find_hierarchies(mountinfo, cgroup))


def group_of(run_id: str) -> tuple[str, ...]:
    """The folders of a run's group. They need not exist."""
    return tuple(f"{place}/{run_id.replace('/', '-')}" for place in places())


def remove_abandoned() -> None:
    """Empty groups that nobody removed, because whoever was to was killed. A replica that waits
    to be started again has one too, and makes it anew if need be."""
    for place in places():
        with suppress(OSError), os.scandir(place) as entries:
            for entry in entries:
                with suppress(OSError):  # gone meanwhile, or somebody is in it
                    if entry.is_dir() and time.time() - entry.stat().st_mtime > ABANDONED_SECONDS:
                        os.rmdir(entry.path)


def choose(found: list[Hierarchy]) -> tuple[str, ...]:
    bases: list[str] = []
    unified = next((h for h in found if h.is_version_2), None)
    base = _base_of_version_2(unified) if unified is not None else None
    wanted = {"cpu", "memory", "cpuacct", "freezer"}
    if base is not None:
        bases.append(base)
        wanted -= {"cpuacct"} | _given(base)
        if _can_end(base):
            wanted -= {"freezer"}
    for hierarchy in found:
        if wanted & hierarchy.controllers:
            writable = [f for f in (hierarchy.top, hierarchy.own) if _may_write(f)]
            bases += writable[:1]
            wanted -= hierarchy.controllers
    return tuple(f"{base}/{RUNS}" for base in bases)


def find_hierarchies(mountinfo: str, cgroup: str) -> list[Hierarchy]:
    """From the texts of /proc/self/mountinfo and /proc/self/cgroup."""
    own: dict[frozenset[str], str] = {}
    for line in cgroup.splitlines():
        _, controllers, path = line.split(":", 2)
        own[frozenset(filter(None, controllers.split(",")))] = path
    found: dict[frozenset[str], Hierarchy] = {}
    for line in mountinfo.splitlines():
        mount, _, system = line.partition(" - ")
        root, point = (_unescaped(word) for word in mount.split(" ")[3:5])
        kind, _, options = system.split(" ", 2)
        if kind not in ("cgroup", "cgroup2"):
            continue
        flags = frozenset(options.split(",")) if kind == "cgroup" else frozenset()
        names = next((n for n in own if n <= flags and bool(n) == bool(flags)), None)
        if names is None or names in found:
            continue
        inside = os.path.relpath(own[names], root)
        path = point if inside.startswith(".") else f"{point}/{inside}"
        found[names] = Hierarchy(controllers=names, top=point, own=path)
    return list(found.values())


def _unescaped(word: str) -> str:
    return word.replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\")


def _base_of_version_2(hierarchy: Hierarchy) -> str | None:
    own = hierarchy.own
    if os.path.basename(own) == SERVER:  # where a server before this one moved
        base = os.path.dirname(own)
        offer_controllers(base)
        return base
    if not _is_root(own) and _may_write(own) and (_is_delegated(own) or _is_only_ours(own)):
        _move_to_the_edge(own)
        offer_controllers(own)
        return own
    if _may_write(hierarchy.top):
        offer_controllers(hierarchy.top)
        return hierarchy.top
    return own if _may_write(own) else None


def _can_end(base: str) -> bool:
    """Whether its groups can be killed or frozen as a whole: the root itself cannot, so one is
    tried."""
    runs = f"{base}/{RUNS}"
    with suppress(OSError):
        os.makedirs(runs, exist_ok=True)
    can = any(os.path.exists(f"{runs}/{file}") for file in ("cgroup.kill", "cgroup.freeze"))
    with suppress(OSError):
        os.rmdir(runs)
    return can


def _may_write(folder: str) -> bool:
    return os.access(folder, os.W_OK) and os.access(f"{folder}/cgroup.procs", os.W_OK)


def _is_root(folder: str) -> bool:
    """The real one, which holds processes and groups alike."""
    return not os.path.exists(f"{folder}/cgroup.events")


def _is_delegated(folder: str) -> bool:
    for name in DELEGATED:
        with suppress(OSError):
            if os.getxattr(folder, name) == b"1":
                return True
    return False


def _is_only_ours(folder: str) -> bool:
    """Nobody is in it but this server, its guardian and what they started."""
    first, parent = os.getpid(), os.getppid()
    with suppress(OSError):
        if GUARDIAN in Path(f"/proc/{parent}/cmdline").read_bytes():
            first = parent
    return _pids(folder) <= {first, *below(first, tree.parents())}


def _move_to_the_edge(folder: str) -> None:
    edge = f"{folder}/{SERVER}"
    with suppress(OSError):
        os.makedirs(edge, exist_ok=True)
        for _ in range(MOVES):
            pids = _pids(folder)
            if not pids:
                return
            for pid in pids:
                with suppress(OSError):  # it has ended meanwhile
                    Path(f"{edge}/cgroup.procs").write_text(str(pid))


def _pids(folder: str) -> set[int]:
    return set(map(int, Path(f"{folder}/cgroup.procs").read_text().split()))


def _given(base: str) -> set[str]:
    with suppress(OSError):
        return set(Path(f"{base}/cgroup.subtree_control").read_text().split())
    return set()
