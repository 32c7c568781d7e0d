"""What the supervisor has to know of a replica that a container runtime runs.

The process that it started is the runtime's client. The program is in a container, the first of
whose processes the kernel treats as nobody else: what it has no handler for does not reach it. And
the container's control group is the runtime's, gone before the client is.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import os
import time

from . import tree
from .groups import Group
from .spawn import CannotStart, spawn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: A container runtime that does not answer must not keep the replica's exit back.
RUNTIME_SECONDS = 20.0
#: How often a container's removal is tried.
REMOVALS = 3
#: A shell blocks all signals while it starts a program. Who does so at every look means it.
LOOKS, BETWEEN_LOOKS = 6, 0.02
DEFAULT, BLOCKED, HEEDED = range(3)


def end_the_deaf() -> int:
    """SIGKILL for those first processes of containers below this process to which SIGTERM means
    what it means by default: to end. How many there were.

    A runtime that puts an init before the program has none. Containers of a runtime with a server
    of its own are not below this process; such runtimes bring an init.
    """
    ended, left = 0, tree.below(os.getpid(), tree.parents())
    for _ in range(LOOKS):
        meant = {pid: _sigterm_of(pid) for pid in left}
        for pid in meant:
            if meant[pid] == DEFAULT:
                tree.kill(pid, _signal.SIGKILL)
                ended += 1
        left = [pid for pid in meant if meant[pid] == BLOCKED]
        if not left:
            break
        time.sleep(BETWEEN_LOOKS)
    return ended


def _sigterm_of(pid: int) -> int:
    """What SIGTERM means to the first process of a container. Others need not be looked after."""
    fields: dict[str, str] = {}
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
            for line in file:
                name, _, value = line.partition(":")
                fields[name] = value.strip()
        numbers = fields["NSpid"].split()  # from our namespace to its own
        blocked, ignored, caught = (
            bool(int(fields[name], 16) >> (_signal.SIGTERM - 1) & 1)
            for name in ("SigBlk", "SigIgn", "SigCgt")
        )
    except (OSError, KeyError, ValueError):
        return HEEDED
    if len(numbers) < 2 or numbers[-1] != "1" or ignored or caught:
        return HEEDED
    return BLOCKED if blocked else DEFAULT


def killed_for_memory(process: dict[str, Any], code: int, kernel_killed: bool) -> str:
    """A sentence where a container that is not removed yet ran out of memory; else nothing.

    The runtime knows, but not on every machine: podman misses it with control groups of version 1.
    So what the kernel counts counts as well, for a program that was killed meanwhile.
    """
    container = process["container"]
    struck = kernel_killed and code == 128 + _signal.SIGKILL
    if not struck and ask(container["asks_out_of_memory"], process["env"]).strip() != b"true":
        return ""
    limit = container["memory_limit"]
    return f"killed for memory: its limit is {limit}" if limit else "killed for memory"


def remove(argv: list[str], environment: dict[str, str]) -> None:
    """Podman first has to find out that a container which we killed does not run, and fails over
    that; who is removed is named."""
    for _ in range(REMOVALS):
        if ask(argv, environment):
            return


def ask(argv: list[str], environment: dict[str, str]) -> bytes:
    """Have the runtime do something; the little that it prints. Nothing where it fails."""
    read, write = os.pipe()
    os.set_blocking(read, False)
    nothing = os.open("/dev/null", os.O_RDWR)
    process = {"argv": argv, "env": environment, "cwd": "/", "mounts": []}
    deadline = time.monotonic() + RUNTIME_SECONDS
    try:
        pid = spawn(process, "", Group([]), write, nothing)
        while os.waitpid(pid, os.WNOHANG)[0] == 0:
            if time.monotonic() > deadline:
                tree.kill(pid, _signal.SIGKILL)
            time.sleep(0.01)
        return os.read(read, 4096)
    except (CannotStart, ChildProcessError, BlockingIOError):
        return b""
    finally:
        for fd in (read, write, nothing):
            os.close(fd)
