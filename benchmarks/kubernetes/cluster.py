"""The control plane that every measure runs on: fresh, audited, and with kwok's nodes."""

from __future__ import annotations

import contextlib
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.kubernetes.controlplane.kubeconfig import MASTERS, User
from tests.kubernetes.controlplane.kwok import write_stages
from tests.kubernetes.controlplane.plane import (
    ControlPlane,
    PlaneOptions,
    wait_for_controllers,
)

from benchmarks.kubernetes.audit import AuditLog
from benchmarks.measure import processor_seconds

#: Whose calls are counted. What the plain client does is counted like an operator's work.
USERS = ("regatta", "upstream", "kubeflow", "plain")
_END = "metadata: {name: pod-exit}"


@contextlib.contextmanager
def cluster(
    nodes: int = 8, *, barrier: str | None = None, kwok: bool = True, accounts: bool = False
) -> Iterator[tuple[ControlPlane, AuditLog]]:
    """With kwok nodes on which no pod ends before `let_pods_end`."""
    with tempfile.TemporaryDirectory(prefix="regatta-bench-") as name:
        folder = Path(name)
        audit = AuditLog(folder, USERS)
        options = PlaneOptions(
            users=tuple(User(user, (MASTERS,)) for user in USERS),
            apiserver_args=audit.arguments(),
            barrier_annotation=barrier,
            kwok=kwok,
            service_accounts=accounts,
        )
        with ControlPlane(options, folder) as plane:
            wait_for_controllers(plane)
            if kwok:
                _play(plane, ends=False)
                plane.nodes.create(nodes)
            yield plane, audit


def let_pods_end(plane: ControlPlane) -> None:
    """From now on a pod ends if its annotations say so (`kwok.exits`): all that run, at once."""
    _play(plane, ends=True)


def until_at_rest(plane: ControlPlane, seconds: float = 60) -> None:
    """Before a clock starts: the API server rebuilds its OpenAPI after a CRD came, and tidies up.

    At rest is an API server that used less than a fifth of one processor for two seconds.
    """
    deadline = time.monotonic() + seconds
    calm = 0
    while calm < 2:
        used = processor_seconds(plane.apiserver.pid)
        time.sleep(1)
        calm = calm + 1 if processor_seconds(plane.apiserver.pid) - used < 0.2 else 0
        if time.monotonic() > deadline:
            print(f"  the API server is busy even after {seconds:.0f} s", file=sys.stderr)
            return


def _play(plane: ControlPlane, *, ends: bool) -> None:
    assert plane.kwok is not None
    plane.kwok.stop()
    config = write_stages(plane.folder / "kwok.yaml", plane.options.barrier_annotation)
    if not ends:
        stages = config.read_text().split("---\n")
        config.write_text("---\n".join(stage for stage in stages if _END not in stage))
    plane.kwok.start()
