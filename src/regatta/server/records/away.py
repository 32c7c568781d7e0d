"""When a database is away, and not wrong: in one kind of error, with what to do.

Away: PostgreSQL is stopped or starts, or does not let us in, the network is cut, a disk is full, a
file is locked or was removed. The next call finds it again by itself. Anything else that a database
says is a mistake of ours and stays what it is.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from regatta.api.errors import RecordsAway, RecordsFull
from regatta.server.records.database_url import Address

_FULL = "its disk is full; make room"
_SQLITE = {
    sqlite3.SQLITE_BUSY: "another program holds it locked; end that one",
    sqlite3.SQLITE_LOCKED: "another program holds it locked; end that one",
    sqlite3.SQLITE_FULL: _FULL,
    sqlite3.SQLITE_IOERR: "its disk does not work, or is full; look at the disk",
    sqlite3.SQLITE_CANTOPEN: "the file cannot be opened; look at its folder and its rights",
    sqlite3.SQLITE_READONLY: "the file cannot be written, or was removed; look at its rights, and "
    "restart the server where it was replaced",
    sqlite3.SQLITE_PERM: "the file cannot be opened; look at its rights",
    sqlite3.SQLITE_NOMEM: "there is no memory for it",
}
#: Read-only: what answers is a standby, and has not taken over yet.
_READ_ONLY = "25006"
_TOO_MANY, _NO_ROOM = "53300", "53100"
#: Who asks may not come in (class 28), or there is no such database.
_NOT_US, _NO_DATABASE = "28", "3D000"
#: The same of a connection that was never made, of which libpq tells no code but this. In another
#: language than English it is told as any other failure.
_SAID_NOT_US = re.compile(
    r"authentication failed for user|no password supplied|no pg_hba\.conf entry|"
    r"pg_hba\.conf rejects|is not permitted to log in|permission denied for database|"
    r"(?:role|database) \".*\" does not exist"
)


@contextmanager
def telling_who_is_away(address: Address) -> Iterator[None]:
    """Raises RecordsAway for what passes by itself, or when somebody looks after the database."""
    try:
        yield
    except PoolTimeout:
        raise RecordsAway(
            f"the team's database ({address}) is busy: no connection was free in time. {_NEXT}"
        ) from None
    except DBAPIError as error:
        why = _why(error)
        if why is None:
            raise
        does = "refuses us" if _refuses_us(error) else "does not answer"
        # Not chained: an error of a driver may hold a whole connection string.
        kind = RecordsFull if why is _FULL else RecordsAway
        raise kind(
            f"the team's database ({address}) {does}: {address.without_secrets(why)}. {_NEXT}"
        ) from None


def at_a_start(away: RecordsAway) -> RecordsAway:
    """The same, of a server that leaves for it: there is no next request."""
    return RecordsAway(str(away).replace(_NEXT, "The server does not start without it."))


def for_a_command(away: RecordsAway) -> RecordsAway:
    """The same, to somebody who runs no server: there are no jobs, and nothing is tried again."""
    return RecordsAway(str(away).removesuffix(f" {_NEXT}"))


_NEXT = "Jobs run on; nothing was recorded, and it is tried again at the next request."


def _why(error: DBAPIError) -> str | None:
    """None: not away."""
    cause = error.orig
    if isinstance(cause, sqlite3.Error):
        code = getattr(cause, "sqlite_errorcode", None)  # none where Python itself refused
        return None if code is None else _SQLITE.get(code & 0xFF)
    return _why_postgresql(error)


def _refuses_us(error: DBAPIError) -> bool:
    state = getattr(error.orig, "sqlstate", None)
    if state is not None:
        return str(state).startswith(_NOT_US) or state == _NO_DATABASE
    return isinstance(error, OperationalError) and bool(_SAID_NOT_US.search(str(error.orig)))


def _why_postgresql(error: DBAPIError) -> str | None:
    said = " ".join(str(error.orig).split())[:300]
    state = getattr(error.orig, "sqlstate", None)
    if _refuses_us(error):
        reason = said.rpartition("FATAL: ")[2]
        return f"{reason}; look at user, password and database of its URL"
    if state == _NO_ROOM:
        return _FULL
    if state == _TOO_MANY:
        return "it has no connection left; raise max_connections, or end others that use it"
    if state == _READ_ONLY:
        return "it is read-only, as a standby is; have the URL lead to the primary"
    if error.connection_invalidated or isinstance(error, (OperationalError, InterfaceError)):
        return f"{said or 'the connection was lost'}; see that it runs and can be reached"
    return None
