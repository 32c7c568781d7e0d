"""A PostgreSQL that says nothing is away, too: its host hangs, or the network drops what is sent.

No time-out of PostgreSQL's own helps, since it would have to answer, and none of TCP's where the
kernel of a frozen server acknowledges what it gets. So whoever waits looks at the clock, gives the
connection up and closes it. The server may still find there what was sent last, such as a COMMIT,
and carry it out once it goes on: before another connection is used, those given up are ended, so
that what is read from then on stays so.
"""

from __future__ import annotations

import os
import socket
import time
from contextlib import suppress
from typing import Any, TypeVar

import psycopg
from psycopg.abc import PQGen
from sqlalchemy import Engine, event

_T = TypeVar("_T")

#: How long a server may say nothing to a statement; to the first one on a connection that has
#: rested, after which another connection is tried; and while it is brought up to date, when a
#: statement may rewrite a whole table.
SILENT_SECONDS = 8.0
SILENT_AFTER_REST = 3.0
SILENT_MIGRATING = 3600.0


class PatientConnection(psycopg.Connection[Any]):
    """Raises OperationalError, and is closed, where the server says nothing for too long."""

    #: That nobody has asked anything on it since somebody let go of it.
    rested = False
    patience: float | None = None
    #: Process ids of servers, of connections that were given up.
    given_up: set[int]

    def wait(self, gen: PQGen[_T], *args: Any, **kwargs: Any) -> _T:
        return super().wait(self._bounded(gen), *args, **kwargs)

    def _bounded(self, gen: PQGen[_T]) -> PQGen[_T]:
        """The same steps; psycopg takes one every tenth of a second, also where nothing came."""
        try:
            wanted = next(gen)
            last = time.monotonic()
            while True:
                ready = yield wanted
                if ready:
                    last = time.monotonic()
                    self.rested = self.rested and not ready & psycopg.waiting.Ready.R
                elif time.monotonic() - last >= self._bound:
                    raise self._give_up()
                wanted = gen.send(ready)
        except StopIteration as end:
            found: _T = end.value
            return found

    @property
    def _bound(self) -> float:
        if self.patience is not None:
            return self.patience
        return SILENT_AFTER_REST if self.rested else SILENT_SECONDS

    def _give_up(self) -> psycopg.OperationalError:
        if not self.rested:  # else it was asked nothing that could still come
            self.given_up.add(self.pgconn.backend_pid)
        # First, or libpq would wait until it has said goodbye.
        with suppress(OSError), socket.socket(fileno=os.dup(self.pgconn.socket)) as end:
            end.shutdown(socket.SHUT_RDWR)
        self.close()
        return psycopg.OperationalError(f"it said nothing for {self._bound:g} s")


def connect_patiently(engine: Engine) -> None:
    """All connections of an engine that is PostgreSQL's."""
    given_up: set[int] = set()

    def connect(_: Any, __: Any, args: list[Any], options: dict[str, Any]) -> PatientConnection:
        connection = PatientConnection.connect(*args, **options)
        connection.given_up = given_up
        try:
            _end(connection, given_up.copy())
        except BaseException:
            connection.close()
            raise
        return connection

    def rest(connection: PatientConnection | None, _: Any) -> None:
        if connection is not None:
            connection.rested = True

    event.listen(engine, "do_connect", connect)
    event.listen(engine, "checkin", rest)


def _end(connection: PatientConnection, given_up: set[int]) -> None:
    if not given_up:
        return
    # Other programs of the same user have other names, should a number be given out again.
    ended = connection.execute(
        "SELECT bool_and(pg_terminate_backend(pid, 500)) FROM pg_stat_activity "
        "WHERE pid = ANY(%s) AND pid <> pg_backend_pid() AND datname = current_database() "
        "AND usename = current_user AND application_name = current_setting('application_name')",
        [list(given_up)],
    ).fetchone()
    connection.commit()
    if ended is not None and ended[0] is False:
        raise psycopg.OperationalError("what it was asked before has not ended yet")
    connection.given_up -= given_up
