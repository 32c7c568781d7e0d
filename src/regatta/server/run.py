"""The server's process: one per state folder, on a loopback port, until it is asked to leave.

`python -m regatta.server.run` is what the guardian starts; `regatta serve` runs the same in the
foreground, without a guardian. Killing this process at any instant is safe: replicas run on, and
the next server finds them.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import uvicorn

from regatta import __version__
from regatta.api.errors import RegattaError
from regatta.daemon.server_files import Address, FileLock, ServerFiles
from regatta.engines.base import Engine
from regatta.engines.local.engine import LocalEngine
from regatta.engines.local.home import open_home
from regatta.engines.local.replicas.open_files import allow_more
from regatta.server.app import make_app
from regatta.server.connections import BoundedConnection, Strangers, stay_calm
from regatta.server.place import Place, bound_log

log = logging.getLogger(__name__)

#: Another server holds this state folder; the guardian leaves quietly.
ALREADY_SERVED = 75
#: The state folder cannot be used; starting again would not change that.
CANNOT_SERVE = 78
#: What listens on all of a machine's addresses, and the one among them that commands here use.
EVERY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}
CLOSE_SECONDS = 10.0
#: Connections that wait to be accepted; and how many are at once, before strangers among them can
#: be turned out.
WAITING, ACCEPTED_AT_ONCE = 2048, 32
#: Somebody may look whether the lock is held by taking it for a moment.
LOCK_TRIES = 20


def main() -> int:
    try:
        home = open_home()
        bound_log(ServerFiles(home.path))
        return serve(home.path, lambda: LocalEngine(home), guarded=True)
    except RegattaError as refused:
        with suppress(OSError):  # a full disk has no room for this either
            print(refused, file=sys.stderr, flush=True)
        return CANNOT_SERVE


def serve(
    folder: Path,
    open_engine: Callable[[], Engine],
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    guarded: bool = False,
    ready: Callable[[Address], None] | None = None,
) -> int:
    """Serves an engine until told to stop; the exit status.

    `folder` holds the server's own files. `open_engine` is called in the event loop that serves,
    once the folder is ours; `ready` once requests are answered.
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    files = ServerFiles(folder)
    lock = FileLock(files.server_lock)
    if not lock.take(LOCK_TRIES):
        return ALREADY_SERVED
    try:
        with _listen(files, host, port) as listener:
            return asyncio.run(_serve(open_engine, files, lock, listener, guarded, ready))
    finally:
        lock.release()


async def _serve(
    open_engine: Callable[[], Engine],
    files: ServerFiles,
    lock: FileLock,
    listener: socket.socket,
    guarded: bool,
    ready: Callable[[Address], None] | None,
) -> int:
    host, port = listener.getsockname()[:2]
    address = Address(
        url=url_of(host, port), pid=os.getpid(), version=__version__, started_at=time.time()
    )

    outcome = 0

    def describe() -> dict[str, Any]:
        return {
            "version": __version__,
            "pid": address.pid,
            "url": address.url,
            "home": str(files.folder),
            "startedAt": address.started_at,
            "guarded": guarded,
        }

    def announce() -> None:
        files.write(address)
        log.info("serving %s (version %s)", address.url, __version__)
        if ready is not None:
            ready(address)

    def stop(code: int) -> None:
        nonlocal outcome
        outcome = code
        watch.cancel()  # or it would write again what goes now
        if code == 0:
            files.forget(address.pid)
        server.should_exit = True
        _leave_in_any_case(code)

    place = Place(files, lock, address, guarded=guarded)
    engine = open_engine()
    app = make_app(
        engine,
        place.token.opens,
        describe=describe,
        stop=stop,
        hosts=_names_of(host),
        any_address=host in EVERY_ADDRESS,
    )
    strangers = Strangers(allow_more())
    server = _Server(app, strangers, announce)
    loop = asyncio.get_running_loop()
    stay_calm(loop, strangers)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, app.state.leave)
    watch = asyncio.create_task(place.keep(app.state.leave))
    try:
        await server.serve(sockets=[listener])
    finally:
        watch.cancel()
        if outcome == 0:
            files.forget(address.pid)
        place.close()
        await engine.close()
    return outcome


class _Server(uvicorn.Server):
    """uvicorn, told when it answers, and with our own meaning of signals: SIGTERM is a request
    to leave in order and ends with 0, so that the guardian does not take it for a death."""

    def __init__(self, app: Any, strangers: Strangers, announce: Callable[[], None]) -> None:
        config = uvicorn.Config(
            app,
            http=partial(BoundedConnection, strangers),  # type: ignore[arg-type]
            backlog=ACCEPTED_AT_ONCE,
            ws="none",
            loop="asyncio",
            log_config=None,
            log_level="warning",
            access_log=False,
            timeout_graceful_shutdown=2,
            # A log position names every pod of its job.
            h11_max_incomplete_event_size=512 * 1024,
        )
        super().__init__(config)
        self._announce = announce

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listener in sockets or []:
            listener.listen(WAITING)
        self._announce()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _leave_in_any_case(code: int) -> None:
    """Being killed is always safe here, so a close that hangs is not waited for."""
    last_resort = threading.Timer(CLOSE_SECONDS, os._exit, [code])
    last_resort.daemon = True
    last_resort.start()


@contextmanager
def _listen(files: ServerFiles, host: str, port: int) -> Iterator[socket.socket]:
    """The port of the server before this one, if it is free: followers find us sooner."""
    previous = files.read()
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = None
    if port == 0 and previous is not None:
        with suppress(OSError, ValueError):
            last = int(previous.url.rpartition(":")[2])
            listener = socket.create_server((host, last), family=family)
    listener = listener or socket.create_server((host, port), family=family)
    with listener:
        yield listener


def url_of(host: str, port: int) -> str:
    """Where this machine's own commands find a server that listens on `host`."""
    host = EVERY_ADDRESS.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _names_of(host: str) -> tuple[str, ...]:
    """What a Host header may say besides the loopback names."""
    if host in EVERY_ADDRESS:
        return (socket.gethostname().lower(), socket.getfqdn().lower())
    return (f"[{host}]" if ":" in host else host,)


if __name__ == "__main__":
    sys.exit(main())
