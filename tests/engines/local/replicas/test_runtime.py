"""What the engine learns about runs, whoever was killed and whoever asks."""

from __future__ import annotations

import os
import select
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from regatta.engines.local.replicas import runtime as runtime_module
from regatta.engines.local.replicas.runspec import Hold, gpu_hold, port_hold
from regatta.engines.local.replicas.runtime import RunPhase, Runtime
from tests.engines.local.runs import Pod, alive, eventually, shell

SLEEPER = "setsid sleep 600 & echo up $!; exec sleep 600"


def supervisor_of(pod: Pod) -> int:
    pid = pod.reaches(RunPhase.RUNNING).supervisor
    assert pid is not None
    return pid


def test_a_folder_that_nobody_claimed_is_not_started(pod: Pod) -> None:
    assert pod.state().phase is RunPhase.NOT_STARTED
    pod.run.mkdir(parents=True)
    assert pod.state().phase is RunPhase.NOT_STARTED


def test_a_spawned_supervisor_is_starting_until_it_claims_its_folder(pod: Pod) -> None:
    slow = Runtime(python="/bin/sleep")
    with pytest.raises(OSError, match="No such file"):
        Runtime(python="/no/such/python").start(pod.spec(shell("true")))
    # A supervisor that does not get as far as its claim: `sleep -I` ends at once.
    slow.start(pod.spec(shell("true")))
    assert slow.inspect(pod.run).phase in (RunPhase.STARTING, RunPhase.NOT_STARTED)
    eventually(lambda: slow.inspect(pod.run).phase is RunPhase.NOT_STARTED)
    assert slow.children() == []


def test_a_running_replica_shows_who_it_is(pod: Pod) -> None:
    pod.start(shell("echo $$; sleep 600"))
    state = pod.reaches(RunPhase.RUNNING)
    pod.says("")
    assert state.pid == int(pod.texts()[0])
    assert state.supervisor != state.pid
    assert state.started_at is not None
    assert state.restarts == 0


def test_a_new_server_finds_what_an_old_one_started(new_pod: Callable[[], Pod]) -> None:
    running, ended = new_pod(), new_pod()
    running.start(shell("echo up; sleep 600"))
    running.says("up")
    ended.play(shell("exit 42"))
    later = Runtime()
    assert later.inspect(running.run).phase is RunPhase.RUNNING
    state = later.inspect(ended.run)
    assert state.exit is not None
    assert state.exit.code == 42
    later.stop(running.run, 5)
    eventually(lambda: later.inspect(running.run).phase is RunPhase.EXITED)


def test_a_killed_supervisor_is_lost_and_its_processes_are_swept(pod: Pod) -> None:
    spec = pod.start(shell(SLEEPER))
    pod.says("up")
    orphan = int(pod.texts()[0].split()[1])
    os.kill(supervisor_of(pod), signal.SIGKILL)
    state = pod.reaches(RunPhase.LOST)
    assert state.exit is not None
    assert (state.exit.code, state.exit.reason) == (None, "SupervisorLost")
    assert alive(orphan)
    assert pod.runtime.sweep(spec.run_id, pod.run) == 2
    assert not alive(orphan)
    assert pod.runtime.sweep(spec.run_id, pod.run) == 0


def test_processes_without_an_environment_are_swept_too(pod: Pod) -> None:
    say = "sleep 600 & echo $$; wait"
    beside = f"env -i sh -c '{say}' & env -i setsid sh -c '{say}' & exec env -i sh -c '{say}'"
    spec = pod.start(shell(beside), shell(f"exec env -i sh -c '{say}'", name="second"))
    eventually(lambda: len(pod.texts()) == 4)
    shells = [int(text.split()[-1]) for text in pod.texts()]
    os.kill(supervisor_of(pod), signal.SIGKILL)
    pod.reaches(RunPhase.LOST)
    assert all(alive(pid) for pid in shells)
    assert pod.runtime.sweep(spec.run_id, pod.run) == 8  # each shell and its sleeper
    assert not any(alive(pid) for pid in shells)


def test_a_sweep_leaves_other_runs_alone(new_pod: Callable[[], Pod]) -> None:
    mine, other = new_pod(), new_pod()
    for pod in (mine, other):
        pod.start(shell("echo up; sleep 600"))
        pod.says("up")
    mine.runtime.sweep(mine.run_ids[0] + "0", mine.folder)
    mine.runtime.sweep(mine.run_ids[0], mine.run)
    mine.ended()
    assert other.state().phase is RunPhase.RUNNING


def test_after_a_reboot_a_run_was_ended_by_it(pod: Pod, monkeypatch: pytest.MonkeyPatch) -> None:
    pod.start(shell("echo up; sleep 600"))
    pod.says("up")
    os.kill(supervisor_of(pod), signal.SIGKILL)
    pod.reaches(RunPhase.LOST)
    monkeypatch.setattr(runtime_module, "boot_id", lambda: "another boot")
    state = pod.state()
    assert state.exit is not None
    assert state.exit.reason == "MachineRestarted"
    assert pod.runtime.pidfd(pod.run) is None


def test_a_claim_that_a_power_cut_emptied_is_told_by_its_time(
    pod: Pod, monkeypatch: pytest.MonkeyPatch
) -> None:
    pod.run.mkdir(parents=True)
    (pod.run / "claim").touch()
    state = pod.state()
    assert state.exit is not None
    assert state.exit.reason == "SupervisorLost"
    monkeypatch.setattr(runtime_module, "boot_time", lambda: time.time() + 60)
    state = pod.state()
    assert state.exit is not None
    assert state.exit.reason == "MachineRestarted"


def test_an_exit_is_known_even_if_the_supervisor_is_killed_right_after(pod: Pod) -> None:
    pod.play(shell("exit 6"))
    for pid in pod.runtime.children():
        os.kill(pid, signal.SIGKILL)
    state = pod.state()
    assert state.exit is not None
    assert state.exit.code == 6


def test_a_pidfd_tells_the_end(pod: Pod) -> None:
    pod.start(shell("echo up; read nothing; sleep 2"))
    fd = pod.runtime.pidfd(pod.run)
    assert fd is not None
    try:
        ready, _, _ = select.select([fd], [], [], 30)
        assert ready == [fd]
        assert pod.state().phase is RunPhase.EXITED
    finally:
        os.close(fd)
    pod.runtime.reap()
    assert pod.runtime.pidfd(pod.run) is None


def test_a_new_server_watches_an_old_supervisor(pod: Pod) -> None:
    pod.start(shell("echo up; sleep 600"))
    pod.says("up")
    later = Runtime()
    fd = later.pidfd(pod.run)
    assert fd is not None
    later.stop(pod.run, 5)
    try:
        assert select.select([fd], [], [], 30)[0] == [fd]
    finally:
        os.close(fd)


def test_supervisors_that_have_ended_are_collected(pod: Pod) -> None:
    pod.play(shell("true"))
    eventually(lambda: pod.runtime.reap() or not pod.runtime.children())


def test_usage_counts_the_whole_tree(pod: Pod) -> None:
    pod.start(shell("(while :; do :; done) & echo up; sleep 600"))
    pod.says("up")
    supervisor_of(pod)
    assert pod.runtime.usage([pod.run])[pod.run].memory_bytes > 100_000
    busy = eventually(lambda: pod.runtime.usage([pod.run])[pod.run].cpu_percent)
    assert busy > 0
    pod.runtime.stop(pod.run, 0)
    pod.ended()
    eventually(lambda: pod.runtime.reap() or not pod.runtime.children())
    assert pod.runtime.usage([pod.run]) == {}


# -- holds -------------------------------------------------------------------------------------


def a_name() -> str:
    return f"regatta-test-{os.getpid()}-{time.monotonic_ns()}"


@pytest.mark.parametrize(
    ("kind", "reason"), [("port", "PortTaken"), ("gpu", "GpuTaken")], ids=["port", "gpu"]
)
def test_what_another_run_holds_is_taken(
    new_pod: Callable[[], Pod], kind: str, reason: str
) -> None:
    hold = Hold(name=a_name(), kind=kind)
    first, second = new_pod(), new_pod()
    first.start(shell("echo up; sleep 600"), holds=(hold,))
    first.says("up")
    state = second.play(shell("echo ran"), holds=(hold,))
    assert state.exit is not None
    assert (state.exit.code, state.exit.reason) == (None, reason)
    assert "another job on this machine" in state.exit.message
    assert second.texts() == []


def test_a_hold_is_free_once_the_exit_is_known(new_pod: Callable[[], Pod]) -> None:
    hold = Hold(name=a_name(), kind="port")
    for code in range(5):
        state = new_pod().play(shell(f"exit {code}"), holds=(hold,))
        assert state.exit is not None
        assert state.exit.code == code


def test_a_hold_does_not_outlive_a_killed_supervisor(new_pod: Callable[[], Pod]) -> None:
    hold = Hold(name=a_name(), kind="gpu")
    first, second = new_pod(), new_pod()
    first.start(shell("echo up; sleep 600"), holds=(hold,))
    first.says("up")
    os.kill(supervisor_of(first), signal.SIGKILL)
    state = second.play(shell("true"), holds=(hold,))
    assert state.exit is not None
    assert state.exit.reason == "Completed"


def test_a_port_on_which_a_stranger_listens_is_taken(pod: Pod) -> None:
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        port = stranger.getsockname()[1]
        hold = Hold(name=a_name(), kind="port", first_port=port, ports=1)
        state = pod.play(shell("echo ran"), holds=(hold,))
    assert state.exit is not None
    assert state.exit.reason == "PortTaken"
    assert f"port {port} is in use" in state.exit.message


def test_blocks_and_devices_have_names_of_their_own() -> None:
    assert port_hold(12000).name == "regatta-ports-12000"
    assert (port_hold(12000).first_port, port_hold(12000).ports) == (12000, 20)
    assert gpu_hold("1").name == "regatta-gpu-1"


def test_folders_that_a_run_needs_are_made(pod: Pod, tmp_path: Path) -> None:
    wanted = tmp_path / "a" / "b"
    state = pod.play(shell(f"test -d {wanted}"), make_folders=(str(wanted),))
    assert state.exit is not None
    assert state.exit.code == 0
