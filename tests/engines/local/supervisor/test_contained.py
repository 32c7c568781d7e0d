"""What a supervisor asks a container runtime, which is a script here; for a real one see
`test_engine_containers`."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import msgspec
import pytest

from regatta.engines.local.replicas.runspec import Contained, Process
from regatta.engines.local.supervisor import contained, memory_kills
from regatta.engines.local.supervisor.groups import Group
from tests.engines.local.runs import Pod, eventually, shell

CAN_MAKE_NAMESPACES = (
    subprocess.run(["unshare", "--pid", "--fork", "true"], capture_output=True).returncode == 0
)


def client(script: str, answer: str, limit: str = "") -> Process:
    container = Contained(
        image="i", env={}, memory_limit=limit, asks_out_of_memory=("sh", "-c", answer)
    )
    return shell(script, container=container)


def test_a_runtime_that_says_so_tells_who_ran_out_of_memory(pod: Pod) -> None:
    """A launcher whose worker was killed exits with a code of its own."""
    ended = pod.play(client("echo training; exit 1", "echo true", limit="64Mi")).exit
    assert ended is not None
    assert (ended.code, ended.reason) == (1, "OOMKilled")
    assert ended.message == "training\nkilled for memory: its limit is 64Mi"


@pytest.mark.parametrize("answer", ["echo false", "exit 1", "exec no-such-program"])
def test_a_runtime_that_does_not_say_so_leaves_an_error_an_error(pod: Pod, answer: str) -> None:
    ended = pod.play(client("echo training; exit 1", answer)).exit
    assert ended is not None
    assert (ended.reason, ended.message) == ("Error", "training")


def test_a_program_that_succeeds_is_not_asked_about(pod: Pod, tmp_path: Path) -> None:
    ended = pod.play(client("exit 0", f"touch {tmp_path}/asked; echo true")).exit
    assert ended is not None
    assert ended.reason == "Completed"
    assert not (tmp_path / "asked").exists()


def test_a_program_that_lost_a_child_for_memory_and_goes_on_has_not_succeeded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bounded = msgspec.to_builtins(client("exit 0", "echo true", limit="64Mi"))
    seen = memory_kills.MemoryKills(Group([]))
    monkeypatch.setattr(memory_kills, "kills_on_this_machine", lambda: 3)
    seen.begin()
    assert seen.judge_container(bounded, 0) == ""
    monkeypatch.setattr(memory_kills, "kills_on_this_machine", lambda: 4)
    assert seen.judge_container(bounded, 0) == "killed for memory: its limit is 64Mi"


def test_a_runtime_that_hangs_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contained, "RUNTIME_SECONDS", 0.1)
    assert contained.ask(["sleep", "600"], {"PATH": os.environ["PATH"]}) == b""


@pytest.mark.skipif(not CAN_MAKE_NAMESPACES, reason="this user may not make PID namespaces")
@pytest.mark.parametrize(
    ("does", "deaf"),
    [("", 1), ("trap : TERM", 0), ("trap '' TERM", 0)],
    ids=["leaves it as it is", "handles it", "ignores it"],
)
def test_only_a_first_process_that_leaves_the_signal_as_it_is_is_killed_instead(
    does: str, deaf: int
) -> None:
    script = f"{does}\necho up; while :; do sleep 0.05; done"
    inside = ["unshare", "--pid", "--fork", "--kill-child", "sh", "-c", script]
    with subprocess.Popen(inside, stdout=subprocess.PIPE) as outer:
        assert outer.stdout is not None
        assert outer.stdout.readline() == b"up\n"
        try:
            assert contained.end_the_deaf() == deaf
            if deaf:
                eventually(lambda: outer.poll() is not None)
        finally:
            outer.kill()


@pytest.mark.parametrize(("blocks_for", "deaf"), [(2, 1), (contained.LOOKS, 0)])
def test_one_that_blocks_signals_for_a_moment_does_not_heed_them(
    monkeypatch: pytest.MonkeyPatch, blocks_for: int, deaf: int
) -> None:
    """As a shell does whenever it starts a program."""
    looks = [contained.BLOCKED] * blocks_for + [contained.DEFAULT]
    killed: list[int] = []
    monkeypatch.setattr(contained.tree, "below", lambda *_: [7])
    monkeypatch.setattr(contained.tree, "kill", lambda pid, _: killed.append(pid))
    monkeypatch.setattr(contained, "_sigterm_of", lambda pid: looks.pop(0))
    assert contained.end_the_deaf() == deaf
    assert killed == [7] * deaf
