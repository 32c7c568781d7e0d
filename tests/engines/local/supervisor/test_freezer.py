"""Who is frozen dies when it is let go, and nobody else is."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from regatta.engines.local.replicas.runtime import RunPhase
from regatta.engines.local.supervisor import freezer
from tests.engines.local.control_groups import ice
from tests.engines.local.runs import Pod, alive, eventually, shell

__all__ = ["ice"]


@contextmanager
def a_sleeper() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "600"])
    try:
        yield process
    finally:
        process.kill()
        freezer.release(process.pid)
        process.wait()


def freeze(pid: int, ice: Path) -> None:
    (ice / "cgroup.procs").write_text(str(pid))
    eventually(lambda: freezer.frozen_in(pid))


def test_one_who_is_frozen_dies_of_a_kill_once_let_go_and_the_others_stay_frozen(
    ice: Path,
) -> None:
    with a_sleeper() as ours, a_sleeper() as beside:
        freeze(ours.pid, ice)
        freeze(beside.pid, ice)
        assert freezer.frozen_in(ours.pid) == str(ice)
        ours.kill()
        freezer.release(ours.pid)
        ours.wait(60)
        assert freezer.frozen_in(beside.pid) == str(ice)
        freezer.release(beside.pid)
        assert not freezer.frozen_in(beside.pid)


@pytest.mark.parametrize("end", ["stop", "lose the supervisor"])
def test_a_process_that_freezes_itself_ends_with_its_replica(
    pod: Pod, ice: Path, tmp_path: Path, end: str
) -> None:
    child = tmp_path / "child"
    freezes = f"echo $$ > {child}.new; mv {child}.new {child}; echo $$ > {ice}/cgroup.procs"
    spec = pod.start(shell(f"sh -c '{freezes}; sleep 600' & exec sleep 600"))
    eventually(child.exists)
    pid = int(child.read_text())
    eventually(lambda: freezer.frozen_in(pid))
    if end == "stop":
        pod.runtime.stop(pod.run, 0)
        pod.ended()
    else:
        pod.runtime.kill_supervisor(pod.run)
        pod.reaches(RunPhase.LOST)
        pod.runtime.sweep(spec.run_id, pod.run)
    assert not alive(pid)
    assert not (pod.run / "left.json").exists()
