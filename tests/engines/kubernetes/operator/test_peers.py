"""What a pod waits for before it trains: its peers' names, and nothing else of them."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from regatta.api.job import Intranet
from regatta.engines.kubernetes.operator.peers import NAME, with_waiting
from tests.controller.builders import a_job, a_scene

NAMES = ["j-ps-0", "j-worker-0"]


def waiting(tmp_path: Path, known: list[str]) -> subprocess.CompletedProcess[str]:
    """The init container of a job with gloo, as a shell runs it where these names resolve.

    Nobody listens anywhere, there is no other program than the two that it may need, and instead
    of sleeping it dies.
    """
    job = a_job().with_ps(1).with_workers(1).gloo(1).intranet(Intranet.SERVICE)
    scene = a_scene(job, services=True)
    pod = scene.tick().pods[-1]
    (container,) = with_waiting(scene.job, pod, "busybox:1")["spec"]["initContainers"]
    assert container["name"] == NAME
    answer = f'for known in {" ".join(known)}; do [ "$1" = "$known" ] && exit 0; done; exit 1'
    for program, script in (("nslookup", answer), ("sleep", "kill $PPID")):
        (tmp_path / program).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / program).chmod(0o755)
    shell, *arguments = container["command"]
    return subprocess.run(
        [f"/bin/{shell}", *arguments],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_no_worker_is_made_to_wait_for_a_servers_port(tmp_path: Path) -> None:
    """K15: with gloo a server opens its port only after all workers have met it."""
    done = waiting(tmp_path, NAMES)

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("missing", NAMES)
def test_every_name_is_waited_for(tmp_path: Path, missing: str) -> None:
    done = waiting(tmp_path, [name for name in NAMES if name != missing])

    assert done.returncode == -signal.SIGTERM
