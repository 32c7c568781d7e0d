"""Starts, finds, stops and measures runs: the engine's only way to a replica's processes.

All truth about a run is in its folder, so a new server knows as much as the old one did. Alive
means that the supervisor's lock on `claim` is held; pids only help to find it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import sys
from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from pathlib import Path

import msgspec

from regatta.controller.world import Exit
from regatta.engines.local import supervisor
from regatta.engines.local.on_behalf.own_folders import make_own
from regatta.engines.local.replicas.containers import remove_containers
from regatta.engines.local.replicas.hierarchies import group_of
from regatta.engines.local.replicas.leftovers import end_leftovers, group_in, mark_of
from regatta.engines.local.replicas.open_files import given
from regatta.engines.local.replicas.procfs import (
    SHORTEST,
    Sample,
    below,
    boot_id,
    boot_time,
    comparable,
    sample,
    sample_of_group,
    start_time,
)
from regatta.engines.local.replicas.runspec import (
    CLAIM_FILE,
    EXIT_FILE,
    LOGS_FOLDER,
    RUN_FILE,
    STATE_FILE,
    STOP_FILE,
    RunSpec,
    encode_run,
)
from regatta.engines.local.store.disk_full import (
    ROOM_FOR_REPLICA,
    has_room_at_a_glance,
    says_full,
)
from regatta.engines.local.supervisor import freezer, tree

SUPERVISOR = str(Path(supervisor.__file__).with_name("__main__.py"))


class RunPhase(StrEnum):
    #: No supervisor has claimed the folder, and none that we started may still do so.
    NOT_STARTED = "NotStarted"
    #: A supervisor was spawned and has not claimed its folder yet, or is setting up.
    STARTING = "Starting"
    RUNNING = "Running"
    EXITED = "Exited"
    #: Claimed, not locked any more, and no exit was written: sweep it.
    LOST = "Lost"


class RunState(msgspec.Struct, frozen=True, kw_only=True):
    phase: RunPhase
    #: The supervisor's pid.
    supervisor: int | None = None
    #: The first container's process (or the running init process).
    pid: int | None = None
    in_init: bool = False
    started_at: datetime | None = None
    #: In-place restarts so far.
    restarts: int = 0
    #: While it waits to be restarted in place: `CrashLoopBackOff: ...`, after `Init:` perhaps.
    waiting: str = ""
    #: Limits that nothing holds here: `cpu, memory`.
    only_counted: str = ""
    #: EXITED: what happened. LOST: code None, reason SupervisorLost or MachineRestarted.
    exit: Exit | None = None
    #: The run ended because it was asked to.
    stopped: bool = False


class Supervisor(msgspec.Struct, frozen=True):
    pid: int
    #: By SIGSTOP, or frozen: it does nothing until somebody has it go on.
    halted: bool


class Usage(msgspec.Struct, frozen=True):
    #: None at the first look: use has no number until there are two to compare.
    cpu_percent: float | None
    memory_bytes: int


class _State(msgspec.Struct):
    """state.json, as the supervisor writes it."""

    pid: int
    start_time: int
    boot_id: str
    child: int | None = None
    in_init: bool = False
    started_at: str = ""
    restarts: int = 0
    waiting: str = ""
    only_counted: str = ""


class _Exit(msgspec.Struct):
    """exit.json, as the supervisor writes it."""

    code: int | None
    reason: str
    message: str
    stopped: bool
    finished_at: datetime
    started_at: datetime | None = None
    restarts: int = 0


_read_state = msgspec.json.Decoder(_State).decode
_read_exit = msgspec.json.Decoder(_Exit).decode


class Runtime:
    """One per server process. Cheap to make; keeps only the children that it spawned itself."""

    def __init__(self, python: str = sys.executable) -> None:
        self._python = python
        #: Supervisors of ours by folder, until they have ended.
        self._spawned: dict[Path, int] = {}
        #: Those for whose folder a later one was spawned; one of the two leaves at once.
        self._doubles: list[int] = []
        self._samples: dict[Path, Sample] = {}

    def start(self, spec: RunSpec) -> int:
        """Write run.json and spawn the supervisor; its pid.

        Calling it twice for one folder does no harm: only one supervisor gets the claim. OSError:
        it cannot be started; with ENOSPC, not before there is room.
        """
        if sys.platform != "linux":
            raise OSError(
                "replicas run on Linux only: they need /proc, subreapers and loopback addresses; "
                "on this system use --server with the address of a Linux machine"
            )
        folder = Path(spec.folder)
        (folder / LOGS_FOLDER).mkdir(parents=True, exist_ok=True)
        if not has_room_at_a_glance(folder, ROOM_FOR_REPLICA):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))
        if spec.own is not None:
            make_own(spec.own, folder)
        # What an account asks for it makes itself, when it starts.
        if all(process.account is None for process in spec.containers):
            for wanted in spec.make_folders:
                os.makedirs(wanted, exist_ok=True)
        # Known before anything starts, so that whoever is killed now can be cleaned up after.
        group = msgspec.structs.replace(spec.group, folders=group_of(spec.run_id))
        spec = msgspec.structs.replace(spec, group=group, mark=mark_of(spec.run_id))
        _replace(folder / RUN_FILE, encode_run(spec))
        null = os.open(os.devnull, os.O_RDWR)
        try:
            # Only what is said here is inherited: descriptors of ours close at exec by themselves.
            pid = os.posix_spawn(
                self._python,
                [self._python, "-I", "-S", SUPERVISOR, str(folder), str(given() or "")],
                {},
                file_actions=[(os.POSIX_SPAWN_DUP2, null, fd) for fd in (0, 1, 2)],
                setsid=True,
                setsigmask=[signal.SIGTERM],  # until it can tell a stop from its own death
                setsigdef=[signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD],
            )
        finally:
            os.close(null)
        if folder in self._spawned:
            self._doubles.append(self._spawned[folder])
        self._spawned[folder] = pid
        return pid

    def inspect(self, folder: Path) -> RunState:
        # The order matters: a supervisor writes exit.json before it lets the lock go, so the exit
        # is looked for once more after the lock was found free.
        if exited := _exited(folder):
            return exited
        spawned = self._spawned_alive(folder)
        alive = _locked(folder)
        if alive:
            return _living(folder)
        if exited := _exited(folder):
            return exited
        if alive is None:  # nobody has claimed it
            if spawned is None:
                return RunState(phase=RunPhase.NOT_STARTED)
            return RunState(phase=RunPhase.STARTING, supervisor=spawned)
        return _lost(folder)

    def pidfd(self, folder: Path) -> int | None:
        """Readable when the supervisor ends. None: it is gone already, or pidfds are missing; then
        `inspect` from time to time."""
        if not hasattr(os, "pidfd_open"):
            return None
        pid = self._find(folder)
        if pid is None:
            return None
        try:
            fd = os.pidfd_open(pid)
        except OSError:
            return None
        if self._find(folder) != pid:  # it ended in between, and the number may be another's now
            os.close(fd)
            return None
        return fd

    def stop(self, folder: Path, grace_seconds: float) -> None:
        """Write stop.json, then signal. A stop that is written before the supervisor has claimed
        its folder, or even before it was spawned, is found when it does. A shorter grace period
        wins over a longer one."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
            _replace(folder / STOP_FILE, msgspec.json.encode({"grace_seconds": grace_seconds}))
        except OSError as error:
            if not says_full(error):
                raise
            # On a full disk the signal alone must do, with the run's own grace period.
        pid = self._find(folder)
        if pid is not None and _locked(folder):
            tree.kill(pid, signal.SIGTERM)
            tree.kill(pid, signal.SIGCONT)  # somebody may have halted it

    def find_supervisor(self, folder: Path) -> Supervisor | None:
        """None: there is none that lives."""
        pid = self._find(folder)
        if pid is None:
            return None
        return Supervisor(pid, tree.is_halted(pid) or bool(freezer.frozen_in(pid)))

    def kill_supervisor(self, folder: Path) -> None:
        """It can do nothing about that, and leaves its replica to be swept."""
        pid = self._find(folder)
        if pid is not None:
            tree.kill(pid, signal.SIGKILL)
            freezer.release(pid)

    def sweep(self, run_id: str, folder: Path, patience: float | None = None) -> int:
        """Kill every process of a run whose supervisor is gone; how many there were. Who does not
        die of it in time is noted in its folder. Containers of a runtime are removed, too."""
        # First, while the runtime's own watchman is there to see the container end.
        remove_containers(folder / RUN_FILE)
        return end_leftovers(run_id, folder, self._find(folder), patience)

    def usage(self, folders: Iterable[Path]) -> dict[Path, Usage]:
        """CPU (since the last call, in percent of one core) and memory of each run: what its group
        counts, or the sum of its processes. Runs that are not alive are left out."""
        used: dict[Path, Usage] = {}
        samples: dict[Path, Sample] = {}
        parent_of: dict[int, int] = {}
        for folder in folders:
            pid = self._find(folder)
            if pid is None:
                continue
            now = sample_of_group(group_in(folder))
            if now is None:
                parent_of = parent_of or tree.parents()  # one look serves them all
                now = sample(below(pid, parent_of))
            before = self._samples.get(folder, now)
            percent = now.cpu_percent_since(before) if comparable(before.at, now.at) else None
            samples[folder] = before if now.at - before.at < SHORTEST else now
            used[folder] = Usage(percent, now.memory_bytes)
        self._samples = samples
        return used

    def children(self) -> list[int]:
        """Supervisors that this process spawned and has not collected yet."""
        return [*self._spawned.values(), *self._doubles]

    def reap(self) -> None:
        """Collect supervisors of ours that have ended."""
        for folder in list(self._spawned):
            self._spawned_alive(folder)
        self._doubles = [pid for pid in self._doubles if not _collected(pid)]

    def _spawned_alive(self, folder: Path) -> int | None:
        pid = self._spawned.get(folder)
        if pid is None:
            return None
        if _collected(pid):
            self._spawned.pop(folder, None)
            return None
        return pid

    def _find(self, folder: Path) -> int | None:
        """The supervisor's pid, if that process lives and is the one that claimed the folder."""
        try:
            pid, started, boot = (folder / CLAIM_FILE).read_text(encoding="ascii").split()
        except (OSError, ValueError):
            return self._spawned_alive(folder)
        if boot != boot_id() or start_time(int(pid)) != int(started):
            return None
        return int(pid)


def _collected(pid: int) -> bool:
    """Whether our child has ended; if so, it is a zombie no longer."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] != 0
    except ChildProcessError:
        return True


def _replace(path: Path, content: bytes) -> None:
    """Whole or not at all. Not forced to the disk: after a power cut no run goes on anyway."""
    temporary = path.with_suffix(".tmp")
    with open(temporary, "wb") as file:
        file.write(content)
    temporary.replace(path)


def _locked(folder: Path) -> bool | None:
    """Whether somebody holds the claim; None when there is none."""
    try:
        fd = os.open(folder / CLAIM_FILE, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def _living(folder: Path) -> RunState:
    try:
        state = _read_state((folder / STATE_FILE).read_bytes())
    except (OSError, msgspec.DecodeError):
        return RunState(phase=RunPhase.STARTING)
    return RunState(
        phase=RunPhase.STARTING if state.in_init or state.waiting else RunPhase.RUNNING,
        supervisor=state.pid,
        pid=state.child,
        in_init=state.in_init,
        started_at=datetime.fromisoformat(state.started_at) if state.started_at else None,
        restarts=state.restarts,
        waiting=state.waiting,
        only_counted=state.only_counted,
    )


def _exited(folder: Path) -> RunState | None:
    try:
        ended = _read_exit((folder / EXIT_FILE).read_bytes())
    except FileNotFoundError:
        return None
    return RunState(
        phase=RunPhase.EXITED,
        started_at=ended.started_at,
        restarts=ended.restarts,
        stopped=ended.stopped,
        exit=Exit(
            code=ended.code,
            reason=ended.reason,
            message=ended.message,
            finished_at=ended.finished_at,
        ),
    )


def _lost(folder: Path) -> RunState:
    before = _living(folder)
    if _from_before_boot(folder):
        reason, message = "MachineRestarted", "the machine restarted while the replica ran"
    else:
        reason, message = "SupervisorLost", "the replica's supervisor was killed"
    return msgspec.structs.replace(
        before,
        phase=RunPhase.LOST,
        stopped=(folder / STOP_FILE).exists(),
        exit=Exit(code=None, reason=reason, message=message),
    )


def _from_before_boot(folder: Path) -> bool:
    claim = folder / CLAIM_FILE
    words = claim.read_text(encoding="ascii", errors="replace").split()
    if len(words) == 3:
        return words[2] != boot_id()
    # A power cut can leave the file empty; then its time tells.
    return claim.stat().st_mtime < boot_time()
