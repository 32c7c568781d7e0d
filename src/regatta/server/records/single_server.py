"""One server a database: two would each record half, and settle each other's submits.

Beside a SQLite file that is a lock which the kernel lets go of with its holder; in PostgreSQL an
advisory lock of a connection that is kept for it. A connection can be lost while the server lives:
that is noticed, the lock is taken again, and where somebody else has it by then, the server is told
to leave.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from sqlalchemy import Connection, NullPool, create_engine, text
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from regatta.api.errors import BrokenDatabase, RecordsAway, RecordsInUse
from regatta.daemon.server_files import FileLock
from regatta.server.records.away import telling_who_is_away
from regatta.server.records.database_url import Address

log = logging.getLogger(__name__)

LOOK_SECONDS = 5.0
#: Of PostgreSQL's advisory locks, the one that says who serves; the other is in `migrate`.
SERVING = 0x5265_6761_0002


class _Lock(Protocol):
    def take(self) -> None:
        """Raises RecordsInUse, or RecordsAway."""

    @property
    def held(self) -> bool: ...

    def look_at_database(self) -> None:
        """Raises BrokenDatabase where it is another than it was."""

    def release(self) -> None: ...


class SingleServer:
    """The right to be the one server of a database, from `take` to `release`."""

    def __init__(self, address: Address) -> None:
        self._lock: _Lock = _FileLock(address) if address.is_sqlite else _AdvisoryLock(address)

    def take(self) -> None:
        """Raises RecordsInUse where another server has it, or RecordsAway."""
        self._lock.take()

    async def keep(self, leave: Callable[[str], None], every: float = LOOK_SECONDS) -> None:
        """Until cancelled, or until the right is somebody else's: then `leave` was told why."""
        while True:
            await asyncio.sleep(every)
            try:
                await asyncio.to_thread(self.look)
            except (RecordsInUse, BrokenDatabase) as lost:
                log.error("%s", lost)
                return leave(str(lost))
            except RecordsAway as away:  # nobody else can take it just now either
                log.warning("%s", away)

    def look(self) -> None:
        """Takes it again where it was lost. Raises RecordsInUse, BrokenDatabase or RecordsAway."""
        self._lock.look_at_database()
        if not self._lock.held:
            log.warning("the lock of the team's database was lost; taking it again")
            self._lock.take()

    def release(self) -> None:
        self._lock.release()


class _FileLock:
    def __init__(self, address: Address) -> None:
        self._database = address.path
        real = Path(os.path.realpath(address.path))  # a link to it is the same database
        self._path = real.with_name(real.name + ".lock")
        self._lock = FileLock(self._path)
        self._taken = False
        self._file: os.stat_result | None = None

    def take(self) -> None:
        self.release()
        try:
            self._taken = self._lock.take()
        except OSError as error:
            raise RecordsAway(
                f"{self._path}, which tells servers of a team apart, cannot be written "
                f"({error.strerror}); look at its folder and its rights"
            ) from None
        if not self._taken:
            raise RecordsInUse(
                f"another server keeps its records in {self._path.with_suffix('')}; stop that one, "
                "or name another database"
            )
        if self._file is None:
            self._file = self._stat()

    @property
    def held(self) -> bool:
        return self._taken and self._lock.in_place

    def look_at_database(self) -> None:
        """SQLite goes on writing to a file that was moved away, and what it takes there nobody
        will find."""
        try:
            file = self._stat()
        except OSError:
            return  # that it cannot be looked at now says nothing of the file
        if self._file is None or file is None or not os.path.samestat(self._file, file):
            raise BrokenDatabase(
                f"{self._database} is not the file that this server opened: it was moved, removed "
                "or replaced. Put the right one there, with its -wal and -shm, and start the "
                "server again"
            )

    def _stat(self) -> os.stat_result | None:
        """None: it is not there."""
        try:
            return self._database.stat()
        except FileNotFoundError:
            return None

    def release(self) -> None:
        self._lock.release()
        self._taken = False


class _AdvisoryLock:
    def __init__(self, address: Address) -> None:
        self._address = address
        #: How our own connection is known, should the network have cut us off from it.
        self._name = f"regatta serve {secrets.token_hex(4)}"
        url = address.url.update_query_dict({"application_name": self._name})
        self._engine = create_engine(
            url, poolclass=NullPool, isolation_level="AUTOCOMMIT", hide_parameters=True
        )
        # Here, because it loads the driver, which SQLite does without.
        from regatta.server.records.waiting.patience import connect_patiently

        connect_patiently(self._engine)
        self._connection: Connection | None = None

    def take(self) -> None:
        self.release()
        with telling_who_is_away(self._address):
            connection = self._engine.connect()
            try:
                self._take_on(connection)
            except BaseException:
                _close(connection)
                raise
        self._connection = connection

    def _take_on(self, connection: Connection) -> None:
        if _try(connection):
            return
        holder = connection.execute(_HOLDER, _KEY).one_or_none()
        if holder is not None and holder.application_name == self._name:
            # Our own, which PostgreSQL does not know to be dead yet.
            connection.execute(text("SELECT pg_terminate_backend(:pid, 5000)"), {"pid": holder.pid})
            holder = None
        if holder is None and _try(connection):
            return
        who = f" ({holder.client_addr or 'on its machine'}, since {holder.since})" if holder else ""
        raise RecordsInUse(
            f"another server{who} keeps its records in {self._address}; stop that one, or name "
            "another database. Of a machine that died, PostgreSQL lets go within a minute."
        )

    def look_at_database(self) -> None:
        """A connection is to the database that it was opened to."""

    @property
    def held(self) -> bool:
        if self._connection is None:
            return False
        try:
            return bool(self._connection.scalar(_HELD, _KEY))
        except DBAPIError:
            return False

    def release(self) -> None:
        if self._connection is not None:
            _close(self._connection)
            self._connection = None


def _try(connection: Connection) -> bool:
    return bool(connection.scalar(text("SELECT pg_try_advisory_lock(:key)"), {"key": SERVING}))


def _close(connection: Connection) -> None:
    with suppress(SQLAlchemyError):
        connection.invalidate()  # not back to a pool: the lock goes with it
    with suppress(SQLAlchemyError):
        connection.close()


_OURS = """
    locktype = 'advisory' AND granted AND classid = :high AND objid = :low AND objsubid = 1
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
_KEY = {"high": SERVING >> 32, "low": SERVING & 0xFFFF_FFFF}
_HELD = text(f"SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND {_OURS}")
_HOLDER = text(
    "SELECT pid, application_name, client_addr, date_trunc('second', backend_start) AS since "
    f"FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE {_OURS}"
)
