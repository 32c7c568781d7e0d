"""Finding the server, and starting one on this machine when there is none.

Exactly one server runs per state folder however many commands start at once: starters queue on
a lock, and the server and its guardian hold locks of their own (`regatta.daemon.files`).
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from regatta import __version__
from regatta.api.errors import RegattaError, ServerHangs, ServerUnreachable, Unanswered
from regatta.client.client import Client
from regatta.client.http import Http
from regatta.daemon.files import Address, FileLock, ServerFiles
from regatta.engines.local.home import Home, home_root, open_home

START_SECONDS = 30.0
#: A server that lives answers at once; on a busy machine it may take a moment, hence several tries.
HEALTH_SECONDS, HEALTH_TRIES = 2.0, 6
_PAUSE = 0.02

T = TypeVar("T")


def connect(server: str | None = None, *, start: bool = True) -> Client:
    """A client for `server`, or for this machine's own, which is started if need be."""
    if server:
        given = os.environ.get("REGATTA_TOKEN", "").strip()
        return Client(Http(server, given or _token_for(server)))
    files = local_files()
    running = answering(files)
    if running is not None and not _older(running.version):
        return _client(files, running)
    if not start:
        raise ServerUnreachable(
            "no server runs on this machine; `regatta server start` starts one, and so does any "
            "command that needs it"
        )
    return _client(files, start_server(files))


def local_files() -> ServerFiles:
    return ServerFiles(local_home().path)


def local_home() -> Home:
    try:
        return open_home()
    except RuntimeError as homeless:
        raise RegattaError(
            "there is no home folder for the state: HOME is not set and the system knows none for "
            "this user; set REGATTA_HOME to a folder of yours"
        ) from homeless


def answering(files: ServerFiles) -> Address | None:
    """The server that answers now, if there is one.

    The port of a server that died may be somebody else's by now, who must not see the token: the
    answer has to name the process that the address names. Raises `ServerHangs` where that process
    is still the server and does not answer.
    """
    address = files.read()
    if address is None:
        return None
    http = Http(address.url, "")
    for _ in range(HEALTH_TRIES):
        try:
            answer = http.request("GET", "/healthz", timeout=HEALTH_SECONDS)
            health = msgspec.json.decode(answer)
        except Unanswered:
            if _serves(files, address.pid):
                continue
            return None  # its successor listens already and does not answer yet
        except (RegattaError, msgspec.DecodeError):
            return None
        same = isinstance(health, dict) and health.get("pid") == address.pid
        return address if same else None
    raise ServerHangs(
        f"the server (process {address.pid}) runs but does not answer; `kill -9 {address.pid}` "
        "ends it: its jobs go on, and the next command starts another"
    )


def _serves(files: ServerFiles, pid: int) -> bool:
    """Whether this process lives and the server's lock is held.

    Asked in this order: taking the lock for a moment could turn away a server that just starts.
    """
    if not Path(f"/proc/{pid}").exists():
        return False
    lock = FileLock(files.server_lock)
    free = lock.take()
    lock.release()
    return not free


def start_server(files: ServerFiles) -> Address:
    """Starts a server and waits until it answers. Whoever comes second finds the first one's."""
    lock = FileLock(files.starting_lock)
    _within(START_SECONDS, lock.take, "another command is still starting the server", files)
    try:
        running = answering(files)
        if running is not None and _older(running.version):
            hand_over(files, running)
            running = None
        if running is not None:
            return running
        return _within(START_SECONDS, _Start(files), "the server did not start", files)
    finally:
        lock.release()


class _Start:
    """Spawns a guardian and looks for its server.

    A guardian that meets its predecessor on the way out leaves, thinking that it is not needed:
    so one that is gone while no server answers is tried once more before that is called a failure.
    """

    def __init__(self, files: ServerFiles) -> None:
        self._files = files
        self._tries = 0
        self._look_after = 0.0

    def __call__(self) -> Address | None:
        if time.monotonic() >= self._look_after and self._nobody_tries():
            if self._tries == 2:
                raise ServerUnreachable("the server could not start" + self._files.last_words())
            spawn_guardian(self._files)
            self._tries += 1
            self._look_after = time.monotonic() + 0.5
        return answering(self._files)

    def _nobody_tries(self) -> bool:
        if answering(self._files) is not None:
            return False
        lock = FileLock(self._files.guardian_lock)
        free = lock.take()
        lock.release()
        return free or self._tries == 0


def stop_server(files: ServerFiles) -> bool:
    """Ends server and guardian; replicas run on. False when none ran."""
    running = answering(files)
    if running is None:
        return False
    hand_over(files, running)
    return True


def hand_over(files: ServerFiles, running: Address) -> None:
    """Asks a server to leave, and waits until its place is free. Its jobs go on running."""
    _client(files, running).stop_server()
    for path in (files.server_lock, files.guardian_lock):
        lock = FileLock(path)
        _within(START_SECONDS, lock.take, f"the server (process {running.pid}) did not stop", files)
        lock.release()


def spawn_guardian(files: ServerFiles, *, adopt: int | None = None) -> None:
    """Starts the process that keeps a server running, detached from this one altogether.

    `setsid` keeps Ctrl-C from it, the log file keeps `submit | cat` from waiting for it. The
    script forks once more, so the wait is short and leaves no zombie.
    """
    script = Path(__file__).parent / "guardian.py"
    server = [sys.executable, "-m", "regatta.server.run"]
    watched = "0" if adopt is None else str(adopt)
    command = [sys.executable, "-I", "-S", str(script), str(files.folder), watched, *server]
    log = files.open_log()
    nothing = os.open(os.devnull, os.O_RDONLY)
    try:
        starter = os.posix_spawn(
            sys.executable,
            command,
            _environment(),
            file_actions=[
                (os.POSIX_SPAWN_DUP2, nothing, 0),
                (os.POSIX_SPAWN_DUP2, log, 1),
                (os.POSIX_SPAWN_DUP2, log, 2),
            ],
            setsid=True,
        )
    finally:
        os.close(log)
        os.close(nothing)
    with suppress(ChildProcessError):  # somebody in this process reaps every child
        os.waitpid(starter, 0)


def _environment() -> dict[str, str]:
    """The server must import the same Regatta as this process, whatever its working directory."""
    source = str(Path(__file__).parent.parent.parent)
    paths = [source, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths)),
        "REGATTA_HOME": str(home_root()),
    }


def _client(files: ServerFiles, address: Address) -> Client:
    return Client(Http(address.url, files.token()))


def _token_for(server: str) -> str:
    """This machine's token when `server` is this machine's server, else none."""
    files = local_files()
    address = files.read()
    if address is not None and address.url == Http(server, "").url:
        return files.token()
    return ""


def _older(version: str) -> bool:
    """Whether a running server is of an earlier version than this client, and must make way.

    A newer one stays: its database may already be in a form that this version cannot read.
    """
    return _numbers(version) < _numbers(__version__)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def _within(seconds: float, attempt: Callable[[], T | None], failed: str, files: ServerFiles) -> T:
    deadline = time.monotonic() + seconds
    while True:
        result = attempt()
        if result:
            return result
        if time.monotonic() > deadline:
            raise ServerUnreachable(f"{failed} within {seconds:.0f} s{files.last_words()}")
        time.sleep(_PAUSE)
