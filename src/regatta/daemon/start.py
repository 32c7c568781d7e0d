"""Starting this machine's server, stopping it, and making way for a newer one.

Exactly one server runs per state folder however many commands start at once: starters queue on
a lock, and the server and its guardian hold locks of their own (`regatta.daemon.server_files`).
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from regatta.api.errors import NoServerHere, ServerUnreachable, UnusableFile
from regatta.daemon.find import answering, ask, is_older, team_is_down
from regatta.daemon.halted import end_halted_guardian
from regatta.daemon.server_files import Address, FileLock, ServerFiles, is_held
from regatta.engines.local.home import home_root

START_SECONDS = 30.0
#: What a server imports beyond what any command does.
PARTS = ("fastapi", "uvicorn")
_PAUSE = 0.02
_STOP = "/regatta/v1/server/stop"

T = TypeVar("T")


def require_parts() -> None:
    """What a server is made of. An image that is there for a cluster need not have it."""
    from importlib.util import find_spec

    missing = [part for part in PARTS if find_spec(part) is None]
    if missing:
        raise NoServerHere(
            f"this installation cannot run a server of its own: {', '.join(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} not installed. Set REGATTA_ENGINE=kubernetes "
            "to run jobs on a cluster, or REGATTA_SERVER to the address of a server; "
            "`pip install regatta-train` installs what is missing."
        )


def start_server(files: ServerFiles) -> Address:
    """Starts a server and waits until it answers. Whoever comes second finds the first one's."""
    if files.is_team:  # one that asks nobody who they are must not take its place
        raise team_is_down(files)
    require_parts()
    try:
        return _start(files)
    except (OSError, ServerUnreachable) as failed:
        from regatta.engines.local.store.disk_full import has_room

        if has_room(files.folder):
            raise
        # Its log could not be written either, so what it ends with is about something else.
        raise UnusableFile(
            f"the server cannot start: the disk that holds {files.folder} is full, and the room "
            "that is kept for starting on a full disk is used up. Nothing is lost. Remove "
            "something else from that disk (1 MiB is enough) and try again; `regatta delete NAME` "
            "then frees what a job's logs take."
        ) from failed


def _start(files: ServerFiles) -> Address:
    lock = FileLock(files.starting_lock)
    _within(START_SECONDS, lock.take, "another command is still starting the server", files)
    try:
        running = answering(files)
        if running is not None and not is_older(running.version):
            return running
        if running is not None:
            hand_over(files, running)
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
        end_halted_guardian(self._files)
        return self._tries == 0 or not is_held(self._files.guardian_lock)


def stop_server(files: ServerFiles) -> bool:
    """Ends server and guardian; replicas run on. False when none ran."""
    running = answering(files)
    if running is None:
        return end_halted_guardian(files)
    hand_over(files, running)
    return True


def hand_over(files: ServerFiles, running: Address) -> None:
    """Asks a server to leave, and waits until its place is free. Its jobs go on running."""
    ask(running, "POST", _STOP, token=files.token(), timeout=START_SECONDS)
    locks = (files.server_lock, files.guardian_lock)
    end_halted_guardian(files)
    stays = f"the server (process {running.pid}) did not stop"
    _within(START_SECONDS, lambda: not any(map(is_held, locks)), stays, files)


def spawn_guardian(files: ServerFiles, *, adopt: int | None = None) -> None:
    """Starts the process that keeps a server running, detached from this one altogether.

    `setsid` keeps Ctrl-C from it, the log file keeps `submit | cat` from waiting for it. The
    guardian forks once more, so the wait is short and leaves no zombie.
    """
    # Without site-packages, so that it starts fast and stays small, and without this directory,
    # where anything may lie.
    guardian = [sys.executable, "-P", "-S", "-m", "regatta.daemon.guardian"]
    server = [sys.executable, "-m", "regatta.server"]
    command = [*guardian, str(files.folder), str(adopt or 0), *server]
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


def _within(seconds: float, attempt: Callable[[], T | None], failed: str, files: ServerFiles) -> T:
    deadline = time.monotonic() + seconds
    while True:
        result = attempt()
        if result:
            return result
        if time.monotonic() > deadline:
            raise ServerUnreachable(f"{failed} within {seconds:.0f} s{files.last_words()}")
        time.sleep(_PAUSE)
