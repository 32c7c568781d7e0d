"""What makes a run happen once: the folder's claim, and the names held while it lives."""

from __future__ import annotations

import _socket
import errno
import fcntl
import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: A hold may still be in the hands of a predecessor that is just ending.
PATIENCE_SECONDS = 1.0


class AlreadyClaimed(Exception):
    """Another supervisor has, or had, this folder: it must not be touched."""


class Taken(Exception):
    """A port block or a GPU is in use by somebody else on this machine."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


def boot_id() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def start_time(pid: int | str) -> int:
    """The kernel's start time of a process (field 22): tells a pid from its reuse. 0: gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[19])
    except (OSError, IndexError, ValueError):
        return 0


def take_claim(folder: str) -> int:
    """Claim the folder for this process; the locked descriptor, to be kept open.

    The lock is taken on a private file which then gets its public name by `link`, which fails if
    the name exists. So the claim is exclusive, and nobody ever sees it unlocked while we live.
    """
    claim = folder + "/claim"
    private = f"{claim}.{os.getpid()}"
    fd = os.open(private, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o644)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.write(fd, f"{os.getpid()} {start_time('self')} {boot_id()}\n".encode())
        os.link(private, claim)
    except FileExistsError:
        raise AlreadyClaimed(folder) from None
    finally:
        os.unlink(private)
    return fd


def take_holds(holds: list[dict[str, Any]]) -> list[_socket.socket]:
    """Hold every name, or raise Taken and hold none."""
    held: list[_socket.socket] = []
    deadline = time.monotonic() + PATIENCE_SECONDS
    try:
        for hold in holds:
            held.append(_take(hold, deadline))
            _try_ports(hold)
    except BaseException:
        for holder in held:
            holder.close()
        raise
    return held


def _take(hold: dict[str, Any], deadline: float) -> _socket.socket:
    holder = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    while True:
        try:
            holder.bind("\0" + hold["name"])
            return holder
        except OSError as error:
            if error.errno != errno.EADDRINUSE or time.monotonic() > deadline:
                holder.close()
                if error.errno != errno.EADDRINUSE:
                    raise
                break
        time.sleep(0.02)
    if hold["kind"] == "gpu":
        device = hold["name"].removeprefix("regatta-gpu-")
        raise Taken("GpuTaken", f"GPU {device} is in use by another job on this machine")
    first, last = hold["first_port"], hold["first_port"] + hold["ports"] - 1
    raise Taken("PortTaken", f"ports {first} to {last} are held by another job on this machine")


def _try_ports(hold: dict[str, Any]) -> None:
    """Paddle binds 0.0.0.0, so that is what is tried. Connections that linger do no harm."""
    for port in range(hold["first_port"], hold["first_port"] + hold["ports"]):
        probe = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
        try:
            probe.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)
            probe.bind(("0.0.0.0", port))
        except OSError:
            raise Taken("PortTaken", f"port {port} is in use by another program") from None
        finally:
            probe.close()
