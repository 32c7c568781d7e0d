"""The local engine's memory: SQLite, one writing connection, typed rows.

A write happens inside `with store.write() as tx:`, which is one transaction: all of it survives a
power cut once the block has ended, or none of it does. Reads outside of one use a connection per
thread and never wait for the writer. A database whose files were removed is written again from
what is open (`footing`). Every transaction that changed something has a version, and
the `feed` tells watchers of it.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
import weakref
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

from regatta.api.errors import BrokenDatabase, DatabaseLocked, NewerDatabase
from regatta.engines.local.store.disk_full import (
    ROOM_FOR_REPLICA,
    ROOM_TO_START,
    Reserve,
    RoomAhead,
    has_room,
    has_room_at_a_glance,
    nothing_changed,
    telling_a_full_disk,
)
from regatta.engines.local.store.feed import Feed
from regatta.engines.local.store.footing import Footing, write_again
from regatta.engines.local.store.locked import locked, telling_a_lock
from regatta.engines.local.store.queries import Queries
from regatta.engines.local.store.writes import Transaction

BUSY_TIMEOUT_MS = 10_000
#: Whoever removes the whole state folder does it file by file, and is done soon. A file that came
#: back meanwhile would keep the folder.
REMOVAL_SECONDS = 0.5


class Store:
    def __init__(self, path: Path) -> None:
        """Raises DiskFull where even what is kept for opening it is gone, and DatabaseLocked."""
        self._path = path
        self._reserve = Reserve(path.with_name(path.name + ".reserve"))
        self._ahead = RoomAhead(path.with_name(path.name + "-wal"))
        if not has_room(path.parent):
            self._reserve.spend()
        try:
            with telling_a_full_disk(path.parent), telling_a_lock(path):
                self._writer = _connect(path)
        except sqlite3.DatabaseError as error:
            raise BrokenDatabase(
                f"the job database {path} cannot be read ({error}). Restore it from a backup, or "
                "move it away to begin with an empty one; logs are put aside in a folder beside it."
            ) from error
        self._writing = threading.RLock()
        #: When another program was last found to hold it; 0 since it let go.
        self._locked_at = 0.0
        self._opening = threading.Lock()
        self._local = threading.local()
        self._readers: list[weakref.finalize[[], threading.Thread]] = []
        try:
            with telling_a_full_disk(path.parent), telling_a_lock(path):
                #: Nothing was here before.
                self.is_new = _format(self._writer) == 0
                migrate(self._writer)
        except BaseException:
            self._writer.close()
            raise
        self._footing = Footing(path)
        #: Of the files: readers that opened former ones open these.
        self._generation = 0
        self.feed = Feed(int(Transaction(self._writer).counter("version")))
        self.keep_room()

    @contextlib.contextmanager
    def write(self, *, making_room: bool = False) -> Iterator[Transaction]:
        """One transaction. Rolled back when the block raises; not reentrant. Raises DiskFull: for
        what makes room not before the room that is kept for it is used up. Raises DatabaseLocked
        before the block."""
        asked = time.monotonic()
        with self._writing, telling_a_full_disk(self._path.parent):
            if self._locked_at > asked:
                # Found out while we waited for our turn: one after another would wait for minutes.
                raise locked(self._path)
            self.stand_firm()
            if not (making_room or self._ahead.is_left()):
                raise nothing_changed(self._path.parent)
            self._begin()
            tx = Transaction(self._writer)
            try:
                yield tx
                if tx.changed:
                    tx.raise_version()
                version = int(tx.counter("version"))
                self._writer.execute("COMMIT")
                if tx.changed:  # before the next one can: a version that is told late is not told
                    self.feed.tell(version, frozenset(tx.touched))
            except BaseException:
                if self._writer.in_transaction:  # SQLite ends it itself when the disk is full
                    self._writer.execute("ROLLBACK")
                raise

    def _begin(self) -> None:
        try:
            with telling_a_lock(self._path):
                self._writer.execute("BEGIN IMMEDIATE")
        except DatabaseLocked:
            self._locked_at = time.monotonic()
            raise
        self._locked_at = 0.0

    def require_room(self, replicas: int) -> None:
        """For so many to be started. Raises DiskFull: what is asked for could be written down, and
        then not be carried out."""
        wanted = ROOM_TO_START + replicas * ROOM_FOR_REPLICA
        if not has_room_at_a_glance(self._path.parent, wanted):
            raise nothing_changed(self._path.parent)

    def keep_room(self) -> None:
        """For what makes room on a full disk, and for a server that starts on one."""
        with self._writing:
            self._ahead.keep()
            self._reserve.keep()

    def claim_room(self) -> None:
        """What was freed a moment ago is for what makes room."""
        with self._writing:
            self._ahead.claim()

    def spend_reserve(self) -> bool:
        """On what makes room; False where none was kept."""
        with self._writing:
            spent = self._reserve.spend()
            self._ahead.claim()
        return spent

    @property
    def read(self) -> Queries:
        """Queries on this thread's own connection, which sees what is committed."""
        queries: Queries | None = getattr(self._local, "queries", None)
        if queries is None or self._local.generation != self._generation:
            self.stand_firm()
            self._local.generation = self._generation
            connection = _connect(self._path)
            connection.execute("PRAGMA query_only = ON")
            # Closed with its thread, or with the store, whichever ends first.
            closer = weakref.finalize(threading.current_thread(), connection.close)
            with self._opening:
                self._readers = [old for old in self._readers if old.alive] + [closer]
            queries = self._local.queries = Queries(connection)
        return queries

    def stand_firm(self) -> None:
        """Writes the database again where its files were removed. Raises BrokenDatabase."""
        # Who only reads must not wait for a writer. What is found amiss may be put right just now.
        with contextlib.suppress(BrokenDatabase):
            if self._footing.is_firm:
                return
        with self._writing:
            if self._writer.in_transaction or self._footing.is_firm:
                return
            time.sleep(REMOVAL_SECONDS)
            if self._footing.is_firm:  # or it raises, as the whole folder is gone by now
                return
            write_again(self._writer, self._path)
            former, self._writer = self._writer, _connect(self._path)
            self._footing = Footing(self._path)
            self._generation += 1
            former.close()

    def close(self) -> None:
        with self._writing, contextlib.suppress(BrokenDatabase, sqlite3.Error, OSError):
            self.stand_firm()
        with self._writing, self._opening:
            for closer in self._readers:
                closer()
            self._readers.clear()
            self._writer.close()


def migrate(connection: sqlite3.Connection) -> None:
    """Bring an older database up to date, one numbered file a transaction; refuse a newer one."""
    steps = _migrations()
    have = _format(connection)
    if have > len(steps):
        raise NewerDatabase(
            f"the job database has format {have}, and this release of regatta knows formats up to "
            f"{len(steps)}: it was written by a newer release. Install that one again, or set "
            "REGATTA_HOME to another folder."
        )
    for number, sql in enumerate(steps[have:], start=have + 1):
        connection.executescript(
            f"BEGIN IMMEDIATE;\n{sql}\nPRAGMA user_version = {number};\nCOMMIT;"
        )


def _format(connection: sqlite3.Connection) -> int:
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    return int(found)


def _migrations() -> list[str]:
    folder = resources.files("regatta.engines.local.store") / "migrations"
    files = sorted(
        (file for file in folder.iterdir() if file.name.endswith(".sql")), key=lambda f: f.name
    )
    return [file.read_text(encoding="utf-8") for file in files]


def _connect(path: Path) -> sqlite3.Connection:
    # Threads take turns under our own lock (writer) or own their connection (readers).
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.row_factory = sqlite3.Row
    for pragma in (
        f"busy_timeout = {BUSY_TIMEOUT_MS}",
        "journal_mode = WAL",
        "synchronous = FULL",
        "foreign_keys = ON",
        "temp_store = MEMORY",  # a long list must not need a disk to be sorted on
    ):
        connection.execute(f"PRAGMA {pragma}")
    return connection
