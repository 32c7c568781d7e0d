"""What a real node needs of this machine: root, Debian's packages, and nothing left behind.

Everything the node makes is found again by its place, not by memory: processes of ours run in one
cgroup or name our folder on their command line, mounts lie under that folder, devices have our
names. So a node that was killed outright is swept away by the next one.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

FOLDER = Path("/var/tmp/regatta-node")
CGROUP = "regatta-node"
NODE_DEVICE = "regatta-node"
POD_DEVICE = "regatta-pods"
PLUGINS = Path("/usr/lib/cni")

_PROGRAMS = {
    "containerd": "containerd",
    "runc": "runc",
    "ip": "iproute2",
    "podman": "podman",
    "debootstrap": "debootstrap",
}
_CGROUPS = Path("/sys/fs/cgroup")


def why_no_real_node() -> str | None:
    """Why this machine cannot carry a real node, or None where it can."""
    if sys.platform != "linux" or not Path("/etc/debian_version").exists():
        return "a real node needs Debian, whose containerd and runc it runs"
    if os.geteuid() != 0:
        return "a real node needs root, for containers and network devices"
    return None


def install_packages() -> None:
    """Install with apt what is missing, and say so."""
    wanted = {package for name, package in _PROGRAMS.items() if _which(name) is None}
    if not (PLUGINS / "bridge").exists():
        wanted.add("containernetworking-plugins")
    if not wanted:
        return
    apt_install(sorted(wanted), "the real node")


def apt_install(names: list[str], purpose: str) -> None:
    """As root on Debian."""
    print(f"installing Debian packages for {purpose}: {' '.join(names)}", file=sys.stderr)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    apt = ["apt-get", "-q", "-o", "DPkg::Lock::Timeout=300"]  # another worker may be at it
    install = [*apt, "install", "-y", "--no-install-recommends", *names]
    first = subprocess.run(install, env=environment, capture_output=True, check=False)
    if first.returncode != 0:  # the package lists may be missing or old
        subprocess.run([*apt, "update"], env=environment, check=True, stdout=sys.stderr)
        subprocess.run(install, env=environment, check=True, stdout=sys.stderr)


def run(*command: str | Path, check: bool = True) -> str:
    ended = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False
    )
    if check and ended.returncode != 0:
        said = (ended.stderr or ended.stdout).strip()
        raise RuntimeError(f"`{' '.join(map(str, command))}` failed: {said}")
    return ended.stdout


def make_device(*addresses: str) -> None:
    """A bridge that carries the node's addresses: a kubelet refuses a loopback one."""
    run("ip", "link", "add", NODE_DEVICE, "type", "bridge")
    for address in addresses:
        run("ip", "address", "add", f"{address}/32", "dev", NODE_DEVICE)
    run("ip", "link", "set", NODE_DEVICE, "up")


def make_cgroup() -> str:
    """A cgroup for all pods, in every hierarchy there is; returns its name for the kubelet."""
    for hierarchy in _hierarchies():
        folder = hierarchy / CGROUP
        folder.mkdir(exist_ok=True)
        for setting in ("cpuset.cpus", "cpuset.mems"):  # version 1 starts them empty, thus useless
            ours, theirs = folder / setting, hierarchy / setting
            if ours.exists() and theirs.exists() and not ours.read_text().strip():
                ours.write_text(theirs.read_text())
    return f"/{CGROUP}"


def sweep() -> None:
    """End and remove everything a node of ours left, whichever process made it."""
    _until_none_left(_daemon_pids, "processes that name our folder")
    _until_none_left(_pod_pids, "processes of pods")
    _until_none_left(_daemon_pids, "shims")
    for mount in _mounts():
        run("umount", "--lazy", mount, check=False)
    for device in (POD_DEVICE, NODE_DEVICE):
        run("ip", "link", "delete", device, check=False)
    _remove_cgroups()
    for link in Path("/var/log/containers").glob("*.log"):
        if link.is_symlink() and os.readlink(link).startswith(f"{FOLDER}/"):
            link.unlink()
    shutil.rmtree(FOLDER, ignore_errors=True)


def _which(name: str) -> str | None:
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


def _daemon_pids() -> list[int]:
    """containerd, its shims, the kubelet and CoreDNS of ours: all name a file in our folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            command = (entry / "cmdline").read_bytes().split(b"\0")
            ours = os.fsencode(f"{FOLDER}/")
            if any(ours in part for part in command[1:]) and _is_node_program(command[0]):
                found.append(int(entry.name))
    return found


def _is_node_program(program: bytes) -> bool:
    name = os.path.basename(program).decode(errors="replace")
    return name in {"containerd", "kubelet", "coredns"} or name.startswith("containerd-shim")


def _pod_pids() -> list[int]:
    found: set[int] = set()
    for hierarchy in _hierarchies():
        for listing in (hierarchy / CGROUP).rglob("cgroup.procs"):
            with contextlib.suppress(OSError):
                found.update(int(pid) for pid in listing.read_text().split())
    return sorted(found - {0, os.getpid()})


def _until_none_left(find: Callable[[], list[int]], what: str) -> None:
    deadline = time.monotonic() + 20
    while pids := find():
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            raise RuntimeError(f"could not end {what} of the test node: {pids}")
        time.sleep(0.05)


def _mounts() -> list[str]:
    """What is mounted under our folder, the deepest first."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    points = [line.split()[4].replace("\\040", " ") for line in lines]
    ours = [point for point in points if point.startswith(f"{FOLDER}/")]
    return sorted(ours, key=len, reverse=True)


def _hierarchies() -> list[Path]:
    if (_CGROUPS / "cgroup.controllers").exists():
        return [_CGROUPS]  # version 2: one for everything
    return [
        entry
        for entry in _CGROUPS.iterdir()
        if entry.is_dir() and not entry.is_symlink() and os.path.ismount(entry)
    ]


def _remove_cgroups() -> None:
    for hierarchy in _hierarchies():
        top = hierarchy / CGROUP
        folders = [entry for entry in top.rglob("*") if entry.is_dir()] if top.exists() else []
        for folder in [*sorted(folders, key=lambda path: -len(path.parts)), top]:
            with contextlib.suppress(OSError):
                folder.rmdir()
