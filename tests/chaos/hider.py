"""A program that does all it can to be left behind. `hider.py TOKEN BEATS`: every process of it
has the token on its command line, and touches the file BEATS while it lives.

It forks twice, begins a session, drops its environment, ignores signals and enters namespaces.
Then two lines of processes hop from number to number, each forking the next and leaving a sleeper
behind now and then. It is bounded, so that a failing test does no harm: a handful of processes at a
time, some hundred forks a second, five minutes at most.
"""

import ctypes
import os
import signal
import sys
import time

SECONDS = 300.0
PAUSE = 0.004
SLEEPERS = 5
CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
IGNORED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGCHLD)


def main(token: str, beats: str, deadline: float) -> None:
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        program = [sys.executable, "-I", "-S", __file__, token, beats, str(deadline)]
        os.execve(sys.executable, program, {})
    print("up", flush=True)
    sleep_until(deadline)


def hide(beats: str, deadline: float) -> None:
    # As root a namespace of users would lose the right to be killed by nobody but root: both kinds.
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0:
        libc.unshare(CLONE_NEWNS)
    for _ in range(2):
        if os.fork() == 0:
            os.setsid()
            hop(beats, deadline)
    sleep_until(deadline)


def hop(beats: str, deadline: float) -> None:
    hops = 0
    while time.time() < deadline:
        if os.fork():
            if hops % 100 == 0 and hops < 100 * SLEEPERS:
                sleep_until(deadline)
            os._exit(0)
        hops += 1
        with open(beats, "w", encoding="ascii") as file:
            file.write(str(os.getpid()))
        time.sleep(PAUSE)
    os._exit(0)


def sleep_until(deadline: float) -> None:
    while time.time() < deadline:
        time.sleep(0.5)
    os._exit(0)


if len(sys.argv) == 3:
    main(sys.argv[1], sys.argv[2], time.time() + SECONDS)
else:
    hide(sys.argv[2], float(sys.argv[3]))
