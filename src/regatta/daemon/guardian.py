"""Keeps the server running: starts it, and starts it again when it dies.

Deadlines, time to live and the stopping of a failed job's peers all happen inside the server, so
a server that died would leave them asleep until somebody's next command. It is run as
`python -P -S -m regatta.daemon.guardian STATE_FOLDER ADOPTED_PID SERVER_COMMAND...` and imports
nothing but the standard library: it has to be small and to have nothing that can break.

- One guardian per state folder: it holds `guardian.lock`, and a second one leaves.
- A server that ends with 0 was asked to, with 75 it found another server in its place, with 78
  its state folder cannot be used: then the guardian ends too. Any other end is a death, and the
  server is started again, after a pause that doubles while it keeps dying.
- A server that has never come to answer is tried a few times only: whoever waits for it should
  hear of that rather than wait. One that has served is started again for ever.
- Where the state folder was removed, nothing is started again: there is nothing left to serve,
  and whoever removed it wants no new one.
- A server whose guardian was killed starts a new one and names itself (ADOPTED_PID). Its exit
  code cannot be had, but a server that was asked to end removes its `server.json`.
"""

import fcntl
import os
import select
import signal
import sys
import time

LEAVE_QUIETLY = (0, 75, 78)
FIRST_PAUSE, LONGEST_PAUSE, STEADY_SECONDS = 0.1, 5.0, 30.0
PAUSE_AFTER_SERVING = 0.5
MOST_TRIES = 3


def main(folder: str, adopted: int, command: list[str]) -> int:
    if os.fork():
        os._exit(0)  # the starter's wait ends here; the guardian belongs to nobody
    os.chdir("/")
    place = os.path.join(folder, "guardian.lock")
    lock = hold_lock(place)
    if lock is None:
        return 0
    stop = StopSignal()
    if adopted:
        stop.concerns(adopted)
        wait_for_stranger(adopted)
        stop.concerns(0)
        if not (in_place(lock, place) and os.path.exists(os.path.join(folder, "server.json"))):
            return 0
    pause, tries, has_served = FIRST_PAUSE, 0, bool(adopted)
    while not stop.asked:
        began = time.monotonic()
        pid, code = run_server(command, stop)
        if stop.asked or code in LEAVE_QUIETLY or not in_place(lock, place):
            return 0
        came_up = served(folder, pid)
        tries, has_served = tries + 1, has_served or came_up
        if tries == MOST_TRIES and not has_served:
            say(f"the server ended with {code} again, giving up")
            return 1
        if time.monotonic() - began > STEADY_SECONDS:
            pause = FIRST_PAUSE
        say(f"the server ended with {code}, starting it again")
        time.sleep(pause)
        # One that came up was most likely killed, and somebody may be waiting for the next.
        pause = min(pause * 2, PAUSE_AFTER_SERVING if came_up else LONGEST_PAUSE)
    return 0


def say(text: str) -> None:
    try:  # noqa: SIM105 - contextlib is not worth its import here
        print(f"guardian: {text}", file=sys.stderr, flush=True)
    except OSError:
        pass  # a full disk: no reason to leave the server alone


class StopSignal:
    """SIGTERM to the guardian ends the server, and then the guardian."""

    def __init__(self) -> None:
        self.asked = False
        self.server = 0
        signal.signal(signal.SIGTERM, self._receive)

    def _receive(self, *_: object) -> None:
        self.asked = True
        self._pass_on()

    def concerns(self, server: int) -> None:
        """From now on; 0: none. Who asked while it was being started meant it, too. To be asked
        twice does a server no harm."""
        self.server = server
        if self.asked:
            self._pass_on()

    def _pass_on(self) -> None:
        if self.server:
            try:  # noqa: SIM105 - as above
                os.kill(self.server, signal.SIGTERM)
            except ProcessLookupError:
                pass  # an adopted one has ended meanwhile


def hold_lock(path: str) -> "int | None":
    # Never closed: the lock is the guardian's sign of life. The server probes it now and then by
    # taking it for a moment, hence more than one try.
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except FileNotFoundError:
        return None
    for _ in range(20):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.01)
        else:
            return descriptor
    return None


def in_place(lock: int, path: str) -> bool:
    """Whether the lock that is held is still the one that others find."""
    try:
        return os.path.samestat(os.fstat(lock), os.stat(path))
    except OSError:
        return False


def run_server(command: list[str], stop: StopSignal) -> tuple[int, int]:
    """Its process id and its exit code, once it has ended."""
    pid = os.posix_spawn(command[0], command, os.environ)
    stop.concerns(pid)
    _, status = os.waitpid(pid, 0)
    stop.concerns(0)
    return pid, os.waitstatus_to_exitcode(status)


def served(folder: str, pid: int) -> bool:
    """Whether this process wrote its address, which it does once it answers."""
    try:
        with open(os.path.join(folder, "server.json"), encoding="utf-8") as file:
            return f'"pid":{pid},' in file.read().replace(" ", "")
    except FileNotFoundError:
        return False


def wait_for_stranger(pid: int) -> None:
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    except (AttributeError, OSError):  # a kernel without pidfd
        while os.path.exists(f"/proc/{pid}"):
            time.sleep(0.5)
        return
    select.select([descriptor], [], [])
    os.close(descriptor)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), sys.argv[3:]))
