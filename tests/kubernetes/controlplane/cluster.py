"""A cluster that a process of its own holds: for a person, or for several test workers at once.

    python -m tests.kubernetes.controlplane.cluster up [--node kwok|real] [--nodes 8]
    python -m tests.kubernetes.controlplane.cluster down

The holder writes `cluster.json` into the cluster's folder once everything runs. A person's cluster
ends with `down`; one that tests joined ends when the last process that joined it is gone, however
that process ended.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.kubernetes.controlplane.access import Access
from tests.kubernetes.controlplane.build import CannotBuild, build, cache_folder, program
from tests.kubernetes.controlplane.kubeconfig import User
from tests.kubernetes.controlplane.machine import why_no_real_node
from tests.kubernetes.controlplane.node import RealNode, sweep_leftovers
from tests.kubernetes.controlplane.plane import (
    ControlPlane,
    PlaneOptions,
    wait_for_controllers,
)
from tests.kubernetes.controlplane.processes import ClusterProblem
from tests.kubernetes.controlplane.programs import KUBERNETES_VERSION

KWOK, REAL = "kwok", "real"
_ROOT = Path(__file__).parents[3]
_PATIENCE_SECONDS = 90.0


@contextlib.contextmanager
def joined(folder: Path, node: str = REAL) -> Iterator[Access]:
    """The cluster of that folder, started if nobody has; it stays as long as anybody is in it."""
    with _turn(folder):
        client = folder / "clients" / str(os.getpid())
        client.parent.mkdir(exist_ok=True)
        client.touch()
        if _holder(folder) is None:
            _forget(folder)
            _start_holder(folder, node, nodes=8, for_clients=True)
    access = _access(folder)
    try:
        yield access
    finally:
        access.close()
        client.unlink(missing_ok=True)


@contextlib.contextmanager
def alone(access: Access) -> Iterator[None]:
    """Wait until no other process of those that joined the cluster is alone in it, then be."""
    with (access.folder / "alone.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def up(folder: Path, node: str, nodes: int) -> tuple[Access, str]:
    """Start a cluster that stays until `down`, or find the one that runs already; which of them it
    was, in a sentence."""
    folder.mkdir(parents=True, exist_ok=True)
    with _turn(folder):
        holder = _holder(folder)
        if holder is None:
            _forget(folder)
            _start_holder(folder, node, nodes, for_clients=False)
    return _access(folder), "" if holder is None else _whose(_state(folder), node)


def _whose(state: dict[str, Any], node: str) -> str:
    """Of a cluster that ran before we came: one may be shared by several checkouts."""
    checkout = state.get("checkout", "another checkout")
    ours = checkout == str(_ROOT)
    said = f"It ran already: {'this checkout' if ours else checkout} started it"
    if state["node"] != node:
        said += f", with {state['node']} nodes and not {node}, as you asked"
    own = "" if ours else "; `make kube-up CLUSTER=FOLDER` makes one of your own"
    return f"{said}{own}.\n"


def down(folder: Path) -> bool:
    """Stop a person's cluster and remove its folder; False if none ran."""
    holder = _holder(folder)
    if holder is not None:
        os.kill(holder, signal.SIGTERM)
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while _is_holder(holder):
            if time.monotonic() > deadline:
                raise ClusterProblem(f"process {holder} did not stop; see {folder}/holder.log")
            time.sleep(0.1)
    sweep_leftovers()
    shutil.rmtree(folder, ignore_errors=True)
    return holder is not None


def hold(folder: Path, node: str, nodes: int, for_clients: bool) -> None:
    """Run the cluster until told to stop, or until the last client is gone."""
    stopped: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: stopped.append(number))
    options = PlaneOptions(kwok=node == KWOK, service_accounts=True)
    with contextlib.ExitStack() as stack:
        plane = stack.enter_context(ControlPlane(options, folder))
        wait_for_controllers(plane)
        if node == REAL:
            stack.enter_context(RealNode(plane, patience_seconds=_PATIENCE_SECONDS))
        else:
            plane.nodes.create(nodes)
        _write_state(folder, plane, node)
        while not stopped and not (for_clients and _nobody_is_left(folder)):
            time.sleep(0.5)
        (folder / "cluster.json").unlink(missing_ok=True)


def _start_holder(folder: Path, node: str, nodes: int, *, for_clients: bool) -> None:
    # Built here and not by the holder, so that the one who waits sees the progress.
    build("etcd", "kubernetes", *(["kwok"] if node == KWOK else ["coredns", "pause"]))
    command = [sys.executable, "-m", "tests.kubernetes.controlplane.cluster", "hold"]
    options = ["--folder", str(folder), "--node", node, "--nodes", str(nodes)]
    log = folder / "holder.log"
    with log.open("ab") as output:
        holder = subprocess.Popen(
            [*command, *options, *(["--for-clients"] if for_clients else [])],
            cwd=_ROOT,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    deadline = time.monotonic() + 2 * _PATIENCE_SECONDS
    while not (folder / "cluster.json").exists():
        if holder.poll() is not None or time.monotonic() > deadline:
            holder.kill()
            holder.wait()
            said = "\n".join(log.read_text(errors="replace").splitlines()[-20:])
            raise ClusterProblem(f"the cluster did not start; {log} ends with:\n{said}")
        time.sleep(0.1)
    holder.returncode = 0  # it goes on without us: nothing is to be collected or warned about


def _write_state(folder: Path, plane: ControlPlane, node: str) -> None:
    plane.kubeconfig("admin")
    tools = folder / "bin"
    tools.mkdir(exist_ok=True)
    with contextlib.suppress(FileExistsError):
        (tools / "kubectl").symlink_to(program("kubectl"))
    state = {
        "pid": os.getpid(),
        "url": plane.url,
        "node": node,
        "checkout": str(_ROOT),
        "users": [dataclasses.asdict(user) for user in plane.users.values()],
    }
    partial = folder / "cluster.json.partial"
    partial.write_text(json.dumps(state))
    partial.chmod(0o600)
    partial.rename(folder / "cluster.json")


def _state(folder: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads((folder / "cluster.json").read_text())
    except FileNotFoundError:
        return {}
    return found


def _access(folder: Path) -> Access:
    state = _state(folder)
    users = [User(u["name"], tuple(u["groups"]), u["token"]) for u in state["users"]]
    return Access(folder, state["url"], users)


def _holder(folder: Path) -> int | None:
    """The process that holds the cluster, if one does."""
    pid = _state(folder).get("pid")
    return pid if pid is not None and _is_holder(pid) else None


def _is_holder(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return b"controlplane.cluster" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


def _forget(folder: Path) -> None:
    """Remove what a cluster that was killed left: its objects must not haunt the next one."""
    for entry in folder.iterdir():
        if entry.name in {"clients", "turn.lock"}:
            continue
        if entry.is_dir():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def _nobody_is_left(folder: Path) -> bool:
    with _turn(folder):
        for client in (folder / "clients").iterdir():
            if Path(f"/proc/{client.name}").exists():
                return False
        # Nobody may join from here on: whoever comes next starts another.
        (folder / "cluster.json").unlink(missing_ok=True)
        return True


@contextlib.contextmanager
def _turn(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "turn.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="cluster", description="A Kubernetes on this machine.")
    parser.add_argument("what", choices=("up", "down", "hold"))
    parser.add_argument("--folder", type=_absolute, default=_usual_folder())
    parser.add_argument("--node", choices=(KWOK, REAL), default=KWOK)
    parser.add_argument("--nodes", type=int, default=8, help="how many kwok nodes")
    parser.add_argument("--for-clients", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    try:
        if asked.what == "hold":
            hold(asked.folder, asked.node, asked.nodes, asked.for_clients)
        elif asked.what == "down":
            print("stopped" if down(asked.folder) else "no cluster was running")
        else:
            if asked.node == REAL and (reason := why_no_real_node()) is not None:
                raise ClusterProblem(reason)
            access, whose = up(asked.folder, asked.node, asked.nodes)
            print(whose + _greeting(asked.folder, access))
    except (ClusterProblem, CannotBuild) as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0


def _absolute(text: str) -> Path:
    return Path(text).absolute()


def _usual_folder() -> Path:
    """One for all checkouts of this machine."""
    return cache_folder() / "cluster"


def _greeting(folder: Path, access: Access) -> str:
    names = [node["metadata"]["name"] for node in access.api.items("/api/v1/nodes")]
    return (
        f"Kubernetes {KUBERNETES_VERSION} with {len(names)} node{'s'[: len(names) != 1]} "
        f"({names[0]}…) runs at {access.url}\n"
        f"  export KUBECONFIG={access.admin_kubeconfig}\n"
        f"  export PATH={folder / 'bin'}:$PATH    # for kubectl\n"
        f"`make kube-down{'' if folder == _usual_folder() else f' CLUSTER={folder}'}` stops it."
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
