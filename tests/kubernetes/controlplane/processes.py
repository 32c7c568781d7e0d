"""Programs of a test cluster as processes: started with a log, paused, stopped, never left behind.

A program is tied to the thread that starts it (`setpriv --pdeathsig`): when the test run is killed
its cluster dies with it. So start one from a thread that lives as long as the cluster should.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.patience import Patience

#: Not the shared generator: a test may seed that, in two workers alike.
_dice = random.SystemRandom()


class ClusterProblem(Exception):
    """A part of the test cluster did not do what it should; the message holds its last words."""


class Daemon:
    """One program that runs until it is stopped. Its output goes to `log`, appended."""

    def __init__(
        self,
        name: str,
        command: Sequence[str | Path],
        log: Path,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.command = [str(part) for part in command]
        self.log = log
        self.environment = dict(environment or {})
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None, f"{self.name} has not been started"
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        setpriv = shutil.which("setpriv")
        tie = [setpriv, "--pdeathsig", "KILL"] if setpriv else []
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                [*tie, *self.command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **self.environment},
                start_new_session=True,  # a terminal's Ctrl-C must not stop etcd first
            )

    def stop(self, grace_seconds: float = 15) -> None:
        """SIGTERM, then SIGKILL after the grace period; returns when the process is gone."""
        if self._process is None:
            return
        if self.alive:
            self._signal(signal.SIGCONT)
            self._signal(signal.SIGTERM)
            try:
                self._process.wait(grace_seconds)
            except subprocess.TimeoutExpired:
                self._signal(signal.SIGKILL)
        self._process.wait(30)

    def kill(self) -> None:
        """SIGKILL, as a crash would; returns when the process is gone."""
        self._signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait(30)

    def pause(self) -> None:
        """Freeze the process: connections stay open and nothing answers."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def last_words(self, lines: int = 15) -> str:
        try:
            said = self.log.read_text(errors="replace").splitlines()
        except OSError:
            return ""
        return "\n".join(said[-lines:])

    def wait_until(
        self, ready: Callable[[], bool], *, what: str, deadline_seconds: float = 120
    ) -> None:
        """Poll until it is ready; a process that ends meanwhile is an error, and so is one that
        says nothing for so many seconds."""
        patience = Patience(deadline_seconds, self.last_words)
        while not ready():
            if not self.alive:
                raise ClusterProblem(
                    f"{self.name} ended before {what}. Its log, {self.log}, ends with:\n"
                    f"{self.last_words()}"
                )
            if patience.over:
                raise ClusterProblem(
                    f"{self.name}: no sign of {what} within {patience}. "
                    f"Its log, {self.log}, ends with:\n{self.last_words()}"
                )
            time.sleep(0.05)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(number)


def free_port(address: str = "127.0.0.1") -> int:
    """A port nobody listens on, below the range the kernel hands to outgoing connections.

    Somebody may take it before it is used: whoever starts a program on it tries again.
    """
    for _ in range(200):
        port = _dice.randrange(18000, 32000)
        with socket.socket() as probe:
            try:
                probe.bind((address, port))
            except OSError:
                continue
            return port
    raise ClusterProblem(f"no free port between 18000 and 32000 on {address} after 200 tries")
