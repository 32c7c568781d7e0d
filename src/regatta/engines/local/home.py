"""Where the local engine keeps its state, and which places are refused.

Everything lives under `$REGATTA_HOME/<machine id>`. The machine id keeps two hosts that share a
home directory apart: another host's boot id would look like a reboot of this one.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import socket
from dataclasses import dataclass
from pathlib import Path

from regatta.api.errors import EngineIsRunning, HomeRefused

#: File systems on which SQLite's write-ahead log and flock are not safe across hosts.
NETWORK_FILE_SYSTEMS = (
    *("nfs", "cifs", "smb", "9p", "lustre", "ceph", "glusterfs", "afs", "beegfs", "gpfs"),
    *("fuse.sshfs", "fuse.glusterfs", "fuse.ceph", "fuse.s3fs", "fuse.juicefs", "fuse.rclone"),
)


@dataclass(frozen=True, slots=True)
class Home:
    """The engine's folder on this machine. `path` exists and is private to its owner."""

    path: Path

    @property
    def database(self) -> Path:
        return self.path / "regatta.db"

    @property
    def lock(self) -> Path:
        return self.path / "engine.lock"

    @property
    def aside(self) -> Path:
        """For the folders of jobs whose database is gone."""
        return self.path / "jobs-without-records"

    def job(self, job_uid: str) -> Path:
        return self.path / "jobs" / job_uid

    def job_of(self, inside: Path) -> str:
        """Whose folder this path is in."""
        return inside.relative_to(self.path / "jobs").parts[0]

    def pod(self, job_uid: str, pod_uid: str) -> Path:
        return self.job(job_uid) / "pods" / pod_uid


class HeldFolder:
    """A folder as it is now, told from another that somebody may put in its place later."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)

    @property
    def is_there(self) -> bool:
        try:
            return os.path.samestat(os.fstat(self._descriptor), os.stat(self._path))
        except OSError as away:
            return not isinstance(away, FileNotFoundError)

    def close(self) -> None:
        os.close(self._descriptor)


def home_root() -> Path:
    """`$REGATTA_HOME`, or `~/.regatta`."""
    named = os.environ.get("REGATTA_HOME", "")
    return Path(named).expanduser().absolute() if named else Path.home() / ".regatta"


def machine_id() -> str:
    for place in ("/etc/machine-id", "/var/lib/dbus/machine-id"):
        try:
            found = Path(place).read_text().strip()
        except OSError:
            continue
        if found:
            return found
    return hashlib.sha256(socket.gethostname().encode()).hexdigest()[:32]


def open_home(root: Path | None = None) -> Home:
    """The home of this machine, made if it is missing; refused on a network file system."""
    root = home_root() if root is None else root
    kind = file_system_of(root)
    if is_network(kind):
        raise HomeRefused(
            f"{root} is on a network file system ({kind}), where the job database is not safe. "
            "Set REGATTA_HOME to a folder on a local disk, for example "
            f"REGATTA_HOME=/var/tmp/regatta-{os.getuid()}, and try again."
        )
    path = root / machine_id()
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.chmod(0o700)
        (path / "jobs").mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise HomeRefused(
            f"{path} cannot be used for the job database ({error.strerror}). "
            "Set REGATTA_HOME to a folder you can write to."
        ) from error
    return Home(path)


def lock_home(home: Home) -> int:
    """Hold the home for one engine; the descriptor must stay open as long as the engine lives."""
    # O_CLOEXEC is Python's default: supervisors must not inherit the lock and outlive us with it.
    descriptor = os.open(home.lock, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise EngineIsRunning(
            f"another engine already works on {home.path}. Use it, or set REGATTA_HOME to "
            "another folder."
        ) from None
    return descriptor


def is_network(kind: str) -> bool:
    return any(kind == known or kind.rstrip("234") == known for known in NETWORK_FILE_SYSTEMS)


def file_system_of(path: Path, mounts: str | None = None) -> str:
    """The type of the file system that holds `path` (or its nearest existing parent)."""
    path = path.absolute()
    while not path.exists() and path != path.parent:
        path = path.parent
    path = path.resolve()
    if mounts is None:
        try:
            mounts = Path("/proc/mounts").read_text()
        except OSError:
            return ""
    best, kind = "", ""
    for line in mounts.splitlines():
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        point = fields[1].replace("\\040", " ")
        inside = point == "/" or str(path) == point or str(path).startswith(point + "/")
        # A later line on the same point hides the earlier one.
        if inside and len(point) >= len(best):
            best, kind = point, fields[2]
    return kind
