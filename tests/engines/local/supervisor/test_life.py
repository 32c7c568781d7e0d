"""How a replica ends, and what is left of it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from regatta.engines.local.replicas.runspec import BackOff, Process
from regatta.engines.local.replicas.runtime import SUPERVISOR, RunPhase
from regatta.engines.local.supervisor.life import EXIT_CLAIMED
from tests.engines.local.runs import AT_ONCE, Pod, alive, eventually, shell


@pytest.mark.parametrize(
    ("script", "code", "reason"),
    [
        ("true", 0, "Completed"),
        ("exit 3", 3, "Error"),
        ("kill -TERM $$", 143, "Error"),
        ("kill -KILL $$", 137, "Error"),
        ("kill -ABRT $$", 134, "Error"),
    ],
)
def test_the_exit_code_is_the_programs_own_and_signals_are_128_plus_n(
    pod: Pod, script: str, code: int, reason: str
) -> None:
    state = pod.play(shell(script))
    assert state.exit is not None
    assert (state.exit.code, state.exit.reason, state.stopped) == (code, reason, False)
    assert state.exit.finished_at is not None
    assert state.started_at is not None


def test_the_message_holds_the_last_lines_of_both_streams(pod: Pod) -> None:
    state = pod.play(shell("echo starting; echo 'no such file' >&2; exit 1"))
    assert state.exit is not None
    assert set(state.exit.message.splitlines()) == {"starting", "no such file"}


def test_the_message_is_short_and_begins_with_a_whole_line(pod: Pod) -> None:
    state = pod.play(shell("i=0; while [ $i -lt 2000 ]; do echo line $i; i=$((i+1)); done; exit 1"))
    assert state.exit is not None
    lines = state.exit.message.splitlines()
    assert len(state.exit.message) <= 4096
    assert lines[-1] == "line 1999"
    assert lines[0] == f"line {2000 - len(lines)}"


def test_an_orphan_that_holds_stdout_neither_delays_the_exit_nor_survives_it(pod: Pod) -> None:
    state = pod.play(shell("sleep 600 & echo $!; exit 7"))
    assert state.exit is not None
    assert state.exit.code == 7
    assert not alive(int(pod.texts()[0]))


def test_a_grandchild_in_a_session_of_its_own_ends_with_the_replica(pod: Pod) -> None:
    # As Paddle's launcher does with its trainers; and a daemon forks twice on top.
    pod.start(shell("setsid sh -c 'setsid sleep 600 & echo daemon $!; sleep 600' & sleep 600"))
    pod.says("daemon")
    daemon = int(pod.texts()[0].split()[1])
    assert alive(daemon)
    pod.runtime.stop(pod.run, 5)
    pod.ended()
    assert not alive(daemon)


def test_a_stop_asks_first(pod: Pod) -> None:
    pod.start(shell("trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.01; done"))
    pod.says("ready")
    pod.runtime.stop(pod.run, 60)
    state = pod.ended()
    assert state.stopped
    assert state.exit is not None
    assert (state.exit.code, state.exit.reason) == (0, "Stopped")
    assert pod.texts() == ["ready", "bye"]


def test_after_the_grace_period_a_stop_does_not_ask(pod: Pod) -> None:
    pod.start(shell("trap '' TERM; echo ready; while :; do sleep 0.01; done"))
    pod.says("ready")
    pod.runtime.stop(pod.run, 0.1)
    state = pod.ended()
    assert state.exit is not None
    assert (state.stopped, state.exit.code) == (True, 137)


def test_a_second_stop_can_shorten_the_grace_period(pod: Pod) -> None:
    pod.start(shell("trap '' TERM; echo ready; while :; do sleep 0.01; done"))
    pod.says("ready")
    pod.runtime.stop(pod.run, 600)
    pod.runtime.stop(pod.run, 0)
    assert pod.ended().stopped


def test_a_stop_that_was_written_before_the_start_starts_nothing(pod: Pod) -> None:
    pod.runtime.stop(pod.run, 5)
    state = pod.play(shell("echo ran"))
    assert state.stopped
    assert state.exit is not None
    assert (state.exit.code, state.exit.reason) == (None, "Stopped")
    assert pod.texts() == []


def test_a_stop_at_the_very_moment_of_the_claim_is_a_stop(new_pod: Callable[[], Pod]) -> None:
    for _ in range(10):
        pod = new_pod()
        pod.start(shell("sleep 600"))
        while not (pod.run / "claim").exists():
            pass
        pod.runtime.stop(pod.run, 5)
        assert pod.ended().stopped


def test_a_second_supervisor_leaves_and_touches_nothing(pod: Pod) -> None:
    spec = pod.start(shell("echo once; sleep 600"))
    pod.says("once")
    before = (pod.run / "state.json").read_bytes()
    second = subprocess.run(
        [sys.executable, "-I", "-S", SUPERVISOR, spec.folder], capture_output=True, check=False
    )
    assert second.returncode == EXIT_CLAIMED
    assert (pod.run / "state.json").read_bytes() == before
    assert pod.state().phase is RunPhase.RUNNING
    assert pod.texts() == ["once"]


def test_a_finished_run_is_not_run_again(pod: Pod, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    spec = pod.spec(shell(f"echo x >> {ran}"))
    for _ in range(2):
        pod.runtime.start(spec)
        eventually(lambda: pod.runtime.reap() or not pod.runtime.children())
    assert ran.read_text() == "x\n"


def test_many_starts_of_one_folder_run_it_once(pod: Pod, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    spec = pod.spec(shell(f"echo x >> {ran}; sleep 0.2"))
    pod.runtime.start(spec)
    starters = [
        subprocess.Popen([sys.executable, "-I", "-S", SUPERVISOR, spec.folder]) for _ in range(5)
    ]
    codes = [starter.wait() for starter in starters]
    pod.ended()
    assert ran.read_text() == "x\n"
    assert codes.count(EXIT_CLAIMED) >= 4


def test_a_program_that_is_not_there_is_named(pod: Pod) -> None:
    process = Process(name="main", argv=("no-such-program",), env={"PATH": "/bin"}, cwd="/")
    state = pod.play(process)
    assert state.exit is not None
    assert (state.exit.code, state.exit.reason) == (127, "CannotStart")
    assert "no-such-program: no such program on PATH (/bin)" in state.exit.message
    assert pod.lines()[-1].stream == "regatta"


def test_a_working_directory_that_is_gone_is_named(pod: Pod) -> None:
    state = pod.play(shell("true", cwd="/no/such/folder"))
    assert state.exit is not None
    assert state.exit.reason == "CannotStart"
    assert "/no/such/folder" in state.exit.message


def test_every_process_carries_the_run_and_only_what_it_was_given(pod: Pod) -> None:
    pod.play(shell("env", env={"PATH": "/bin:/usr/bin", "GIVEN": "a b"}))
    variables = dict(text.split("=", 1) for text in pod.texts())
    for added_by_the_shell in ("PWD", "SHLVL", "_", "OLDPWD"):
        variables.pop(added_by_the_shell, None)
    assert variables == {
        "PATH": "/bin:/usr/bin",
        "GIVEN": "a b",
        "REGATTA_RUN": f"{pod.uid}/0",
    }


def test_no_signal_is_ignored_that_a_shell_would_not_ignore(pod: Pod) -> None:
    pod.play(shell("grep -E 'SigIgn|SigBlk' /proc/self/status"))
    blocked, ignored = (int(text.split()[1], 16) for text in pod.texts())
    assert blocked == 0
    for number in (signal.SIGPIPE, signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGXFSZ):
        assert not ignored & (1 << (number - 1)), number


def test_init_processes_run_in_order_before_the_rest(pod: Pod) -> None:
    pod.play(shell("echo main"), init=(shell("echo one", name="a"), shell("echo two", name="b")))
    assert pod.texts() == ["[a] one", "[b] two", "main"]


def test_a_failing_init_process_is_named_and_nothing_else_runs(pod: Pod) -> None:
    state = pod.play(shell("echo main"), init=(shell("echo no data; exit 4", name="fetch"),))
    assert state.exit is not None
    assert (state.exit.code, state.exit.reason) == (4, "Init:Error")
    assert state.exit.message == "init container fetch failed: no data"
    assert pod.texts() == ["[fetch] no data"]


def test_a_silent_failure_does_not_speak_with_its_init_processs_words(pod: Pod) -> None:
    state = pod.play(shell("exit 1"), init=(shell("echo fetched", name="fetch"),))
    assert state.exit is not None
    assert state.exit.message == ""


def test_a_replica_in_its_init_process_is_starting(pod: Pod, tmp_path: Path) -> None:
    go = tmp_path / "go"
    wait = f"while [ ! -e {go} ]; do sleep 0.01; done"
    pod.start(shell("sleep 600"), init=(shell(wait, name="a"),))
    state = eventually(lambda: s if (s := pod.state()).in_init else None)
    assert state.phase is RunPhase.STARTING
    go.touch()
    assert not pod.reaches(RunPhase.RUNNING).in_init


def until_there(path: Path) -> str:
    return f"until [ -e {path} ]; do sleep 0.02; done"


def test_the_first_container_decides_and_takes_the_others_with_it(pod: Pod, tmp_path: Path) -> None:
    go = tmp_path / "go"
    pod.start(
        shell(f"echo first; {until_there(go)}; exit 5"),
        shell("echo second; sleep 600", name="side"),
    )
    eventually(lambda: sorted(pod.texts()) == ["[side] second", "first"])
    go.touch()
    state = pod.ended()
    assert state.exit is not None
    assert state.exit.code == 5


def test_a_second_container_may_end_before_the_first(pod: Pod, tmp_path: Path) -> None:
    go = tmp_path / "go"
    pod.start(shell(until_there(go)), shell("exit 9", name="side"))
    eventually(lambda: "container side ended, exit code 9" in pod.texts())
    go.touch()
    state = pod.ended()
    assert state.exit is not None
    assert state.exit.code == 0
    assert "container side ended, exit code 9" in pod.texts()


def test_on_failure_restarts_in_place_until_it_succeeds(pod: Pod, tmp_path: Path) -> None:
    tries = tmp_path / "tries"
    state = pod.play(
        shell(f"echo x >> {tries}; echo try; [ $(wc -l < {tries}) -eq 3 ]"),
        restart_policy="OnFailure",
        back_off=AT_ONCE,
    )
    assert state.exit is not None
    assert (state.exit.code, state.restarts) == (0, 2)
    assert [line.text for line in pod.lines() if line.stream == "stdout"] == ["try"] * 3


def test_init_processes_are_not_run_again_by_a_restart(pod: Pod, tmp_path: Path) -> None:
    tries = tmp_path / "tries"
    pod.play(
        shell(f"echo x >> {tries}; [ $(wc -l < {tries}) -eq 2 ]"),
        init=(shell("echo init", name="i"),),
        restart_policy="OnFailure",
        back_off=AT_ONCE,
    )
    assert [line.text for line in pod.lines() if line.stream == "stdout"] == ["[i] init"]


def test_a_replica_that_waits_to_restart_says_so_and_can_be_stopped(pod: Pod) -> None:
    an_hour = BackOff(base_seconds=3600.0, limit_seconds=3600.0)
    pod.start(shell("exit 1"), restart_policy="Always", back_off=an_hour)
    waiting = eventually(lambda: s if (s := pod.state()).waiting else None)
    assert (waiting.phase, waiting.restarts, waiting.pid) == (RunPhase.STARTING, 2, None)
    why, at = waiting.waiting.rsplit(" at ", 1)
    assert why == "CrashLoopBackOff: exit code 1, restart 2"
    assert re.fullmatch(r"\d\d:\d\d:\d\d UTC", at)
    pod.runtime.stop(pod.run, 30)
    state = pod.ended()
    assert state.exit is not None
    assert (state.stopped, state.exit.code) == (True, 1)


def test_an_init_process_that_waits_to_restart_is_named_and_nothing_runs(pod: Pod) -> None:
    an_hour = BackOff(base_seconds=3600.0, limit_seconds=3600.0)
    failing = shell("exit 4", name="fetch")
    pod.start(shell("echo main"), init=(failing,), restart_policy="OnFailure", back_off=an_hour)
    waiting = eventually(lambda: s if (s := pod.state()).waiting else None)
    assert (waiting.phase, waiting.in_init, waiting.pid) == (RunPhase.STARTING, True, None)
    why = "Init:CrashLoopBackOff: init container fetch: exit code 4, restart 2 at "
    assert waiting.waiting.startswith(why)
    assert [line.text for line in pod.lines() if line.stream == "stdout"] == []
    pod.runtime.stop(pod.run, 30)
    assert pod.ended().stopped


def test_the_supervisor_ignores_what_a_terminal_sends(pod: Pod, tmp_path: Path) -> None:
    pod.start(shell(f"echo up; until [ -e {tmp_path}/go ]; do sleep 0.01; done; echo still up"))
    pod.says("up")
    supervisor = pod.state().supervisor
    assert supervisor is not None
    for number in (signal.SIGINT, signal.SIGHUP):
        os.kill(supervisor, number)
    assert os.getsid(supervisor) == supervisor
    (tmp_path / "go").touch()
    state = pod.ended()
    assert state.exit is not None
    assert (state.exit.code, pod.texts()) == (0, ["up", "still up"])


def test_a_machine_that_shuts_down_does_not_make_a_replica_succeed(pod: Pod) -> None:
    pod.start(shell("trap 'exit 0' TERM; echo ready; while :; do sleep 0.01; done"))
    pod.says("ready")
    supervisor = pod.state().supervisor
    assert supervisor is not None
    os.kill(supervisor, signal.SIGTERM)
    state = pod.ended()
    assert state.exit is not None
    assert (state.exit.code, state.exit.reason) == (143, "Terminated")


def test_what_killing_does_not_end_is_cleaned_up_by_command(pod: Pod, tmp_path: Path) -> None:
    cleaned = tmp_path / "cleaned"
    pod.play(shell("exit 1", cleanup=("touch", str(cleaned))))
    assert cleaned.exists()


def test_a_clean_up_that_is_not_there_does_not_cost_the_exit(pod: Pod) -> None:
    state = pod.play(shell("exit 1", cleanup=("no-such-runtime", "rm")))
    assert state.exit is not None
    assert state.exit.code == 1


def test_two_replicas_do_not_disturb_each_other(new_pod: Callable[[], Pod]) -> None:
    long, short = new_pod(), new_pod()
    long.start(shell("echo up; sleep 600"))
    long.says("up")
    short.play(shell("exit 2"))
    assert long.state().phase is RunPhase.RUNNING
