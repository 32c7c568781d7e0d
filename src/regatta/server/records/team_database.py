"""A team's database: SQLite in a file, or PostgreSQL; opened, brought up to date, and asked.

`await database.run(work, ...)` is one transaction that may write, `await database.read(work, ...)`
one that may not; `work` is handed the connection and runs in a thread: it may block. On SQLite one
thread writes, and takes the lock when it begins (BEGIN IMMEDIATE), so that nobody finds out halfway
that somebody else was faster. Statements are SQLAlchemy Core, the same for both.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import stat
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import DatabaseError

from regatta.api.errors import BadSetting, BrokenDatabase, RecordsFull
from regatta.engines.local.store.disk_full import Reserve
from regatta.server.records.away import telling_who_is_away
from regatta.server.records.database_url import Address, read_url
from regatta.server.records.formats import NEWEST, format_of
from regatta.server.records.waiting.turn_threads import TurnThreads

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

READERS = 4
_SQLITE = b"SQLite format 3\0"
#: How long a request waits for a lock, or for a connection: less than it takes until a client that
#: is not known yet is cut off (`server/bounds/connections`), so that it is told why.
BUSY_MILLIS = 7_000
POOL_SECONDS = 7.0


class Database:
    """Open until `close`. Raises BadSetting, NewerDatabase, BrokenDatabase or RecordsAway."""

    def __init__(self, url: str, kept_in: str = "") -> None:
        """`kept_in`: where the records of this place were until now, as far as is known: where that
        is this file, none is made in its stead."""
        self.address = read_url(url)
        if self.address.is_sqlite:
            if not self.address.path.exists():
                refuse_to_begin_anew(self.address, kept_in)
            _make_file(self.address)
        self._engine = _open(self.address)
        self._reserve = _reserve_of(self.address)
        writers = 1 if self.address.is_sqlite else READERS
        self._writers = TurnThreads(writers, "records-write")
        self._readers = TurnThreads(READERS, "records-read")
        try:
            self._refuse_what_is_none()
            self._bring_up_to_date()
        except BaseException:
            self.close()
            raise
        self._reserve.keep()

    async def run(
        self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """One transaction: all of it is kept, or, where `work` raises, nothing. Raises RecordsAway.

        Whoever is cancelled while it runs does not stop it: it may have been written."""
        return await self._writers.call(partial(self.run_here, work, *args, **kwargs))

    async def read(
        self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """One view of what is written. Raises RecordsAway."""
        return await self._readers.call(partial(self.read_here, work, *args, **kwargs))

    async def make_room(
        self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """As `run`, of what leads to room on a full disk: with what is kept for that."""
        return await self._writers.call(partial(self._make_room, work, *args, **kwargs))

    def _make_room(
        self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        try:
            return self.run_here(work, *args, **kwargs)
        except RecordsFull:
            if not self._reserve.spend():
                raise
            return self.run_here(work, *args, **kwargs)
        finally:
            self._reserve.keep()

    def run_here(
        self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """As `run`, for a caller that blocks."""
        with telling_who_is_away(self.address), self._engine.begin() as connection:
            return work(connection, *args, **kwargs)

    def read_here(
        self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        reading = self._engine.execution_options(**READING)
        with telling_who_is_away(self.address), reading.begin() as connection:
            return work(connection, *args, **kwargs)

    def close(self) -> None:
        """What has begun is finished first."""
        self._writers.close()
        self._readers.close()
        self._engine.dispose()

    def _bring_up_to_date(self) -> None:
        if self.read_here(format_of) == NEWEST:
            return
        # Here, because it loads Alembic, which is needed once for each release.
        from regatta.server.records.migrate import bring_up_to_date

        with telling_who_is_away(self.address):
            bring_up_to_date(self._engine)

    def _refuse_what_is_none(self) -> None:
        """A file that is no database says so at its first statement."""
        if not self.address.is_sqlite:
            return
        try:
            with telling_who_is_away(self.address), self._engine.connect() as connection:
                connection.exec_driver_sql("PRAGMA schema_version")
        except DatabaseError as error:
            raise BrokenDatabase(
                f"the team's database {self.address} cannot be read ({error.orig}). Restore it "
                "from a backup, or name another file."
            ) from None


class _NoReserve:
    """Of a database on a machine of its own."""

    def keep(self) -> None:
        pass

    def spend(self) -> bool:
        return False


def _reserve_of(address: Address) -> Reserve | _NoReserve:
    if not address.is_sqlite:
        return _NoReserve()
    return Reserve(address.path.with_name(address.path.name + ".reserve"))


#: What a transaction says of itself: that it will not write.
READING = {"postgresql_readonly": True, "regatta_reading": True}


def _open(address: Address) -> Engine:
    if not address.is_sqlite:
        # Here, because it loads the driver, which SQLite does without.
        from regatta.server.records.waiting.patience import connect_patiently

        engine = create_engine(
            address.url,
            hide_parameters=True,  # they hold what people wrote
            pool_pre_ping=True,
            pool_size=2 * READERS,
            max_overflow=2,
            pool_timeout=POOL_SECONDS,
        )
        connect_patiently(engine)
        return engine
    engine = create_engine(
        address.url,
        hide_parameters=True,
        pool_size=READERS + 1,
        max_overflow=2,
        pool_timeout=POOL_SECONDS,
        connect_args={"timeout": BUSY_MILLIS / 1000, "check_same_thread": False},
    )
    event.listen(engine, "connect", _prepare)
    event.listen(engine, "begin", _begin)
    return engine


def refuse_to_begin_anew(address: Address, kept_in: str) -> None:
    """Of a file that is not there, and was: raises BrokenDatabase. SQLite would throw away what was
    written last, which lies beside it; and accounts that are made meanwhile would be gone when it
    is put back."""
    path = address.path
    wal = path.with_name(path.name + "-wal")
    if wal.exists() and wal.stat().st_size:
        raise BrokenDatabase(
            f"the team's database {path} is gone, and what was written into it last is still in "
            f"{wal}. Put the file back beside that. To begin without, move that away, too."
        )
    if kept_in == str(address):
        raise BrokenDatabase(
            f"the team's database {path}, with all accounts and records, is gone. Put it back, or "
            "restore it from a backup. To begin without, make an empty file there: "
            f"(umask 077; touch {path})"
        )


def _make_file(address: Address) -> None:
    """For its owner alone, from the first moment; SQLite gives the files beside it the same."""
    try:
        address.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not address.path.exists():
            with suppress(FileExistsError):
                os.close(os.open(address.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except OSError as error:
        raise BadSetting(
            f"the team's database: {address.path} cannot be made ({error.strerror}); name a file "
            "in a folder that this user may write to"
        ) from None
    _close_to_others(address.path)


def _close_to_others(path: Path) -> None:
    """A copy of a database is as open as the mask of whoever made it, and has the hashes of
    passwords in it. What is no database is left alone."""
    try:
        with path.open("rb") as file:
            if file.read(len(_SQLITE)) not in (_SQLITE, b""):
                return
    except OSError:  # its first statement tells
        return
    for each in (path, *(path.with_name(path.name + end) for end in ("-wal", "-shm"))):
        with suppress(FileNotFoundError):
            mode = stat.S_IMODE(each.stat().st_mode)
            if mode & 0o077:
                _close(each, mode)


def _close(file: Path, mode: int) -> None:
    try:
        file.chmod(mode & 0o700)
    except OSError as error:
        raise BadSetting(
            f"the team's database: {file} can be read by others ({mode:o}) and cannot be closed to "
            f"them ({error.strerror}); as its owner, `chmod 600 {file}`"
        ) from None
    log.warning("%s could be read by others (%o); it is its owner's alone now", file, mode)


def _prepare(connection: sqlite3.Connection, _: Any) -> None:
    connection.isolation_level = None  # transactions begin where `_begin` says
    for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {pragma}")


def _begin(connection: Connection) -> None:
    reading = connection.get_execution_options().get("regatta_reading")
    connection.exec_driver_sql(f"PRAGMA query_only = {'ON' if reading else 'OFF'}")
    connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")
