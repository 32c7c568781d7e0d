"""The server's process: one per state folder, on a loopback port, until it is asked to leave.

`python -m regatta.server` is what the guardian starts; `regatta serve` runs the same in the
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
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import uvicorn
from fastapi import FastAPI

from regatta import __version__
from regatta.api.errors import RegattaError
from regatta.daemon.server_files import Address, FileLock, ServerFiles
from regatta.engines.base import Engine
from regatta.engines.local.engine import LocalEngine
from regatta.engines.local.home import open_home
from regatta.engines.local.replicas.open_files import allow_more
from regatta.server.app import make_app
from regatta.server.bounds.connections import BoundedConnection, Strangers, stay_calm
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


class Process(NamedTuple):
    """The serving process, as what it serves knows it."""

    files: ServerFiles
    address: Address
    guarded: bool
    #: What a Host header may name besides loopback.
    hosts: tuple[str, ...]
    any_address: bool
    place: Place
    #: Ends it, with this exit status.
    stop: Callable[[int], None]

    def describe(self) -> dict[str, Any]:
        return {
            "version": __version__,
            "pid": self.address.pid,
            "url": self.address.url,
            "home": str(self.files.folder),
            "startedAt": self.address.started_at,
            "guarded": self.guarded,
        }


class Served(NamedTuple):
    """What a process serves: made in its event loop, closed there."""

    app: FastAPI
    close: Callable[[], Awaitable[None]]


OpenServed = Callable[[Process], Awaitable[Served]]


def serve(
    folder: Path,
    open_engine: Callable[[], Engine],
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    guarded: bool = False,
    ready: Callable[[Address], None] | None = None,
) -> int:
    """Serves an engine to one person until told to stop; the exit status.

    `folder` holds the server's own files. `open_engine` is called in the event loop that serves,
    once the folder is ours; `ready` once requests are answered.
    """

    async def open_served(process: Process) -> Served:
        token = process.place.token
        assert token is not None
        engine = open_engine()
        app = make_app(
            engine,
            token.opens,
            describe=process.describe,
            stop=process.stop,
            hosts=process.hosts,
            any_address=process.any_address,
        )
        return Served(app, engine.close)

    return run(folder, open_served, host=host, port=port, guarded=guarded, ready=ready)


def run(
    folder: Path,
    open_served: OpenServed,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    guarded: bool = False,
    ready: Callable[[Address], None] | None = None,
    tls: tuple[Path, Path] | None = None,
    with_token: bool = True,
) -> int:
    """`with_token`: whether one word opens the server, and is kept in its folder. `tls`: its
    certificate and key."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    files = ServerFiles(folder)
    lock = FileLock(files.server_lock)
    if not lock.take(LOCK_TRIES):
        return ALREADY_SERVED
    try:
        with _listen(files, host, port) as listener:
            host, port = listener.getsockname()[:2]
            url = url_of(host, port, secure=tls is not None)
            address = Address(url=url, pid=os.getpid(), version=__version__, started_at=time.time())
            place = Place(files, lock, address, guarded=guarded, with_token=with_token)
            return asyncio.run(_serve(open_served, place, host, listener, ready, tls))
    finally:
        lock.release()


async def _serve(
    open_served: OpenServed,
    place: Place,
    host: str,
    listener: socket.socket,
    ready: Callable[[Address], None] | None,
    tls: tuple[Path, Path] | None,
) -> int:
    outcome = 0
    files, address = place.files, place.address

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

    names, any_address = _names_of(host), host in EVERY_ADDRESS
    served = await open_served(
        Process(files, address, place.guarded, names, any_address, place, stop)
    )
    strangers = Strangers(allow_more())
    server = _Server(served.app, strangers, announce, tls)
    loop = asyncio.get_running_loop()
    stay_calm(loop, strangers)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, served.app.state.leave)
    watch = asyncio.create_task(place.keep(served.app.state.leave))
    try:
        await server.serve(sockets=[listener])
    finally:
        watch.cancel()
        if outcome == 0:
            files.forget(address.pid)
        place.close()
        await served.close()
    return outcome


class _Server(uvicorn.Server):
    """uvicorn, told when it answers, and with our own meaning of signals: SIGTERM is a request
    to leave in order and ends with 0, so that the guardian does not take it for a death."""

    def __init__(
        self,
        app: Any,
        strangers: Strangers,
        announce: Callable[[], None],
        tls: tuple[Path, Path] | None,
    ) -> None:
        certificate, key = tls or (None, None)
        config = uvicorn.Config(
            app,
            ssl_certfile=certificate,
            ssl_keyfile=key,
            http=partial(BoundedConnection, strangers),  # type: ignore[arg-type]
            backlog=ACCEPTED_AT_ONCE,
            ws="none",
            loop="asyncio",
            log_config=None,
            log_level="warning",
            access_log=False,
            # Else it believes what any client of this machine says of where it comes from.
            proxy_headers=False,
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
        # Its connections have it from here: asyncio asks for it only where a socket says TCP, and
        # one that is made for a host does not. Else a kept connection waits 40 ms for the body of
        # an answer.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield listener


def url_of(host: str, port: int, *, secure: bool = False) -> str:
    """Where this machine's own commands find a server that listens on `host`."""
    host = EVERY_ADDRESS.get(host, host)
    scheme = "https" if secure else "http"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def _names_of(host: str) -> tuple[str, ...]:
    """What a Host header may say besides the loopback names."""
    if host in EVERY_ADDRESS:
        return (socket.gethostname().lower(), socket.getfqdn().lower())
    return (f"[{host}]" if ":" in host else host,)


if __name__ == "__main__":  # as guardians start it that have run since an earlier version
    sys.exit(main())
