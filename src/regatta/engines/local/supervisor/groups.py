"""A run's control group: what bounds its processes, counts for them, and ends all of them at once.

It is a folder in each of the machine's hierarchies that serve: one with version 2, one a controller
with version 1, both where a machine has both. Which of the kernel's files stand in a folder tells
what it can do, so nothing here asks for a version. The engine chose the folders and wrote them into
`run.json` before anything started; the supervisor makes them, and whoever comes last removes them.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

#: What a limit of processor time is counted in, and the least that the kernel takes of it.
PERIOD_US, LEAST_US = 100_000, 1_000
#: The parent of all runs goes with the last of them, perhaps while another run is being made.
TRIES = 10
#: Groups that a program makes in its own may lie so deep: what has no path cannot be removed.
DEEPEST = "64"
#: Freezing and removing take the kernel a moment.
FREEZE_SECONDS, REMOVE_SECONDS, PAUSE = 0.5, 1.0, 0.005


class CannotEnter(Exception):
    """The folder is there, but processes may not be put into it."""

    def __init__(self, folder: str, why: str) -> None:
        super().__init__(why)
        self.folder = folder


class Group:
    def __init__(self, folders: list[str], memory_bytes: int = 0, cpus: float = 0.0) -> None:
        self.folders = list(folders)
        self.memory_bytes = memory_bytes
        self._cpus = cpus
        #: Limits that nothing here holds.
        self.only_counted: list[str] = []
        #: Who uses up the memory is killed alone, and that is counted.
        self.loses_one_by_one = False

    @classmethod
    def of(cls, spec: dict[str, Any] | None) -> Group:
        """As `run.json` says; one that an older release wrote knows no groups."""
        spec = spec or {}
        return cls(spec.get("folders", []), spec.get("memory_bytes", 0), spec.get("cpus", 0.0))

    def make(self) -> None:
        """All of it that can be made, with its limits. Making it again does no harm."""
        self.folders = [folder for folder in self.folders if _make(folder)]
        self._put("cgroup.max.depth", DEEPEST)
        self.only_counted, self.loses_one_by_one = [], False
        if self._cpus and not self._limit_cpu():
            self.only_counted.append("cpu")
        if self.memory_bytes and not self._limit_memory():
            self.only_counted.append("memory")

    def _limit_cpu(self) -> bool:
        quota = max(LEAST_US, round(self._cpus * PERIOD_US))
        return self._put("cpu.max", f"{quota} {PERIOD_US}") or (
            self._put("cpu.cfs_period_us", str(PERIOD_US))
            and self._put("cpu.cfs_quota_us", str(quota))
        )

    def _limit_memory(self) -> bool:
        """Swap is no way around it; what is left of a replica after a kill is of no use."""
        amount = str(self.memory_bytes)
        if self._put("memory.max", amount):
            self._put("memory.swap.max", "0")
        elif self._put("memory.limit_in_bytes", amount):
            self._put("memory.memsw.limit_in_bytes", amount)
        else:
            return False
        as_a_whole = self._put("memory.oom.group", "1")
        self.loses_one_by_one = not as_a_whole and self.out_of_memory_kills() is not None
        return True

    def leave_out(self, folder: str) -> None:
        """Do without this one, and with what the others hold."""
        _remove(folder)
        self.folders.remove(folder)
        self.make()

    def enter(self) -> None:
        """Put this process into it, and with it all that it will ever start."""
        for folder in self.folders:
            try:
                _write(folder + "/cgroup.procs", "0")
            except OSError as error:
                raise CannotEnter(folder, str(error)) from None

    def pids(self) -> set[int]:
        found: set[int] = set()
        for folder in self.folders:
            for inner in _with_inner(folder):
                found.update(map(int, _read(inner + "/cgroup.procs").split()))
        return found - {0, os.getpid()}

    def kill(self) -> set[int]:
        """One blow at everybody in it, against which no fork helps; who was there."""
        pids = self.pids()
        if not pids:
            return pids
        if not self._put("cpu.max", "max"):  # dying takes time, too
            self._put("cpu.cfs_quota_us", "-1")
        if not self._put("cgroup.kill", "1"):
            self._freeze()
            pids |= self.pids()
            _kill_each(pids)
            self._put("cgroup.freeze", "0")
            self._put("freezer.state", "THAWED")
        elif len(self.folders) > 1:  # somebody may have left one of the hierarchies
            _kill_each(self.pids())
        return pids

    def _freeze(self) -> None:
        if not (self._put("cgroup.freeze", "1") or self._put("freezer.state", "FROZEN")):
            return
        deadline = time.monotonic() + FREEZE_SECONDS
        while time.monotonic() < deadline:
            if self._number("cgroup.events", "frozen") or self._text("freezer.state") == "FROZEN\n":
                return
            time.sleep(PAUSE)

    def remove(self) -> bool:
        """False where a process that even SIGKILL has not ended is still in it."""
        deadline = time.monotonic() + REMOVE_SECONDS
        while self.folders and not min(map(_remove, self.folders)):
            if time.monotonic() > deadline:
                return False
            time.sleep(PAUSE)
        return True

    # -- counters: None where nothing here counts that ---------------------------------------------

    def cpu_seconds(self) -> float | None:
        used = self._number("cpu.stat", "usage_usec")
        if used is not None:
            return used / 1e6
        used = self._number("cpuacct.usage")
        return None if used is None else used / 1e9

    def memory_used(self) -> int | None:
        """Without the file contents that the kernel would drop for the asking."""
        for total, spare in (
            ("memory.current", "inactive_file"),
            ("memory.usage_in_bytes", "total_inactive_file"),
        ):
            used = self._number(total)
            if used is not None:
                return max(0, used - (self._number("memory.stat", spare) or 0))
        return None

    def out_of_memory_kills(self) -> int | None:
        kills = self._number("memory.events", "oom_kill")
        return self._number("memory.oom_control", "oom_kill") if kills is None else kills

    def has_met_its_limit(self) -> bool:
        """Or came as close as one large allocation leaves it. The kernel counts whole pages, so a
        limit below one is none at all."""
        most, limit = (self._number(f"memory.{n}_in_bytes") for n in ("max_usage", "limit"))
        met = most is not None and most >= 0.9 * (limit or 0)
        return bool(self.memory_bytes and (met or self._number("memory.events", "max")))

    def _number(self, file: str, key: str = "") -> int | None:
        for line in self._text(file).splitlines():
            words = line.split()
            if not key or words[0] == key:
                return int(words[-1])
        return None

    def _text(self, file: str) -> str:
        for folder in self.folders:
            if text := _read(f"{folder}/{file}"):
                return text
        return ""

    def _put(self, file: str, value: str) -> bool:
        """Whether a folder has such a file and took the value."""
        for folder in self.folders:
            try:
                _write(f"{folder}/{file}", value)
            except OSError:
                continue
            return True
        return False


def offer_controllers(folder: str) -> None:
    """Let groups in this one have limits of their own: version 2 asks for that at every level."""
    offered = _read(folder + "/cgroup.controllers").split()
    given = _read(folder + "/cgroup.subtree_control").split()
    for controller in ("cpu", "memory"):
        if controller in offered and controller not in given:
            try:
                _write(folder + "/cgroup.subtree_control", "+" + controller)
            except OSError:
                continue  # processes are in it: its groups can end and count, but not bound


def _make(folder: str) -> bool:
    parent = os.path.dirname(folder)
    for _ in range(TRIES):
        try:
            if not os.path.isdir(parent):
                os.mkdir(parent)
            offer_controllers(parent)
            os.mkdir(folder)
        except FileExistsError:
            if os.path.isdir(folder):
                return True
        except FileNotFoundError:
            continue
        except OSError:
            return False
        else:
            return True
    return False


def _remove(folder: str) -> bool:
    try:
        for inner in reversed(list(_with_inner(folder))):
            os.rmdir(inner)
    except FileNotFoundError:
        pass
    except OSError:
        return False
    try:  # noqa: SIM105 - contextlib is not worth its import here
        os.rmdir(os.path.dirname(folder))
    except OSError:
        pass  # other runs are in it
    return True


def _with_inner(folder: str) -> Iterator[str]:
    """The folder, then those that the program made in it, each before what is in it. How deep
    they lie is the program's doing, so nothing here calls itself."""
    todo = [folder]
    while todo:
        outer = todo.pop()
        yield outer
        try:
            with os.scandir(outer) as listed:
                entries = list(listed)
        except OSError:
            continue  # gone meanwhile, or so deep that it has no path
        todo += [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]


def _kill_each(pids: set[int]) -> None:
    for pid in pids:
        try:  # noqa: SIM105 - contextlib is not worth its import here
            os.kill(pid, _signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass


def _read(path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:
            return file.read()
    except OSError:
        return ""


def _write(path: str, value: str) -> None:
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, value.encode("ascii"))
    finally:
        os.close(fd)
