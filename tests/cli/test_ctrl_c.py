"""Ctrl-C while a job is followed, on a real terminal."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.doors import FOREVER, Regatta, Terminal, eventually, shell_job


def test_one_ctrl_c_detaches_and_the_job_goes_on(
    regatta: Regatta, name: str, terminal: Callable[..., Terminal]
) -> None:
    window = terminal("run", regatta.write(shell_job(name, FOREVER)))
    window.until("worker-0 .* up")
    window.press_ctrl_c()

    assert window.end() == 130
    assert f"regatta logs -f {name}" in window.seen
    assert f"regatta stop {name}" in window.seen
    assert regatta.client.get("default", name).status.phase == "Running"


#: `regatta` that leaves far more time for a second Ctrl-C than a busy machine needs.
PATIENT = """
from regatta.cli.follow import attached
from regatta.cli.main import main
attached.SECOND_CHANCE_SECONDS = 30.0
main()
"""


def test_a_second_ctrl_c_stops_the_job(
    regatta: Regatta,
    name: str,
    terminal: Callable[..., Terminal],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(regatta, "command", lambda *words: [sys.executable, "-c", PATIENT, *words])
    window = terminal("run", regatta.write(shell_job(name, FOREVER)))
    window.until("worker-0 .* up")
    window.press_ctrl_c()
    window.until("press Ctrl-C again")
    window.press_ctrl_c()

    assert window.end() == 3
    assert f"Stopping job {name}." in window.seen
    assert regatta.client.get("default", name).status.phase == "Aborted"


def has_a_caller(url: str) -> bool:
    """Whether somebody is connected to it, as the kernel has it."""
    port = urlsplit(url).port
    rows = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    established = "01"
    return any(row[3] == established and int(row[1].partition(":")[2], 16) == port for row in rows)


def test_ctrl_c_before_the_answer_says_that_the_job_may_be_there(fresh: Regatta, name: str) -> None:
    fresh("get")
    server = fresh.address
    os.kill(server.pid, signal.SIGSTOP)
    window = Terminal(fresh, "run", fresh.write(shell_job(name, FOREVER)))
    try:
        eventually(lambda: has_a_caller(server.url), "the request being under way")
        window.press_ctrl_c()
        assert window.end() == 130
    finally:
        os.kill(server.pid, signal.SIGCONT)
        window.close()
    assert "it may have arrived" in window.seen
    assert "regatta get" in window.seen


def test_ctrl_c_in_logs_leaves_the_job_alone(
    regatta: Regatta, name: str, terminal: Callable[..., Terminal]
) -> None:
    regatta("submit", regatta.write(shell_job(name, FOREVER)))
    window = terminal("logs", "-f", name)
    window.until("worker-0 .* up")
    window.press_ctrl_c()

    assert window.end() == 130
    assert regatta.client.get("default", name).status.phase == "Running"


def test_a_terminal_shows_colours_and_a_status_line_with_progress(
    regatta: Regatta, name: str, terminal: Callable[..., Terminal]
) -> None:
    script = (
        'python3 -c "import regatta; regatta.progress(50, 100, loss=0.25)"; '
        "while [ ! -e go ]; do sleep 0.05; done"
    )
    go = regatta.folder / "go"
    go.unlink(missing_ok=True)
    window = terminal("run", regatta.write(shell_job(name, script)))
    window.until("50% 50/100")
    go.touch()

    assert window.end() == 0
    assert "loss 0.25" in window.seen
    assert "\x1b[32mCompleted\x1b[0m" in window.seen


def test_the_server_survives_ctrl_c_of_the_command_that_started_it(
    fresh: Regatta, name: str
) -> None:
    window = Terminal(fresh, "run", fresh.write(shell_job(name, FOREVER)))
    try:
        window.until("worker-0 .* up")
        window.press_ctrl_c()
        assert window.end() == 130
    finally:
        window.close()

    job = eventually(lambda: fresh.client.get("default", name), "the job")
    assert job.status.phase == "Running"
