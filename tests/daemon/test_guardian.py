"""The guardian stays small: one runs for every state folder, for as long as its server does."""

from __future__ import annotations

import signal
import subprocess
import sys

from tests.doors import SOURCE

HEAVY = ("json", "typing", "re", "subprocess", "msgspec", "asyncio", "click")


def said_by(program: str) -> tuple[str, str]:
    done = subprocess.run(
        [sys.executable, "-P", "-S", "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        env={"PYTHONPATH": str(SOURCE)},
    )
    return done.stdout, done.stderr


def test_the_guardian_imports_nothing_heavy() -> None:
    probe = f"""
import sys
before = set(sys.modules)
import regatta.daemon.guardian
print(sorted(set({HEAVY}) & (set(sys.modules) - before)))
"""
    assert said_by(probe) == ("[]\n", "")


#: Somebody asks the guardian to end once its server runs, and before it knows that server's number.
ASKED_TOO_SOON = """
import os, signal
from regatta.daemon import guardian
spawn = os.posix_spawn

def spawn_and_be_asked(*words):
    pid = spawn(*words)
    signal.raise_signal(signal.SIGTERM)
    return pid

os.posix_spawn = spawn_and_be_asked
stop = guardian.StopSignal()
_, code = guardian.run_server(["/bin/sleep", "20"], stop)
print(stop.asked, code)
"""


def test_who_asks_it_to_end_while_it_starts_its_server_ends_the_server_too() -> None:
    assert said_by(ASKED_TOO_SOON) == (f"True {-signal.SIGTERM}\n", "")


#: It is adopted: somebody asks in the same moment.
ASKED_BEFORE_IT_ADOPTS = """
import os, signal, subprocess
from regatta.daemon import guardian
stop = guardian.StopSignal()
server = subprocess.Popen(["/bin/sleep", "20"])
signal.raise_signal(signal.SIGTERM)
stop.concerns(server.pid)
print(server.wait())
stop.concerns(server.pid)
"""


def test_who_asks_it_to_end_before_it_adopts_a_server_ends_that_server_too() -> None:
    assert said_by(ASKED_BEFORE_IT_ADOPTS) == (f"{-signal.SIGTERM}\n", "")
