"""A second server on the same database is refused; a lock that was lost is taken again, or the
server leaves."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from regatta.api.errors import BrokenDatabase, RecordsAway, RecordsInUse
from regatta.server.records.database_url import read_url
from regatta.server.records.single_server import SingleServer
from regatta.server.records.team_database import Database
from tests.server.records.postgresql import PostgreSQL


@pytest.fixture
def first(database: Database) -> Iterator[SingleServer]:
    server = SingleServer(database.address)
    server.take()
    yield server
    server.release()


def test_a_second_server_is_refused_until_the_first_has_left(
    first: SingleServer, database: Database
) -> None:
    second = SingleServer(database.address)
    for _ in range(2):
        with pytest.raises(RecordsInUse, match=r"another server.*keeps its records in.*stop that"):
            second.take()
    first.release()
    _eventually_taken(second)
    second.release()


def test_a_link_to_a_database_is_the_same_one(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/team/records.sqlite")
    (tmp_path / "link.sqlite").symlink_to(tmp_path / "team/records.sqlite")
    first = SingleServer(database.address)
    first.take()
    try:
        with pytest.raises(RecordsInUse):
            SingleServer(read_url(f"sqlite:///{tmp_path}/link.sqlite")).take()
    finally:
        first.release()
        database.close()


def test_servers_of_different_databases_do_not_meet(
    first: SingleServer, database: Database, tmp_path: object, request: pytest.FixtureRequest
) -> None:
    if database.address.is_sqlite:
        other = f"sqlite:///{tmp_path}/other.sqlite"
    else:
        other = request.getfixturevalue("postgresql").new_database()
    second = SingleServer(read_url(other))
    second.take()
    second.release()


def test_a_server_that_was_killed_holds_nothing(url: str) -> None:
    program = (
        "import sys, signal\n"
        "from regatta.server.records.database_url import read_url\n"
        "from regatta.server.records.single_server import SingleServer\n"
        "server = SingleServer(read_url(sys.argv[1]))\n"
        "server.take()\nprint('held', flush=True)\nsignal.pause()\n"
    )
    Database(url).close()
    with subprocess.Popen(
        [sys.executable, "-c", program, url], stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        ours = SingleServer(read_url(url))
        with pytest.raises(RecordsInUse):
            ours.take()
        os.kill(other.pid, signal.SIGKILL)
        other.wait()
    _eventually_taken(ours)
    ours.release()


def _eventually_taken(server: SingleServer) -> None:
    """PostgreSQL notices a closed connection a moment later."""
    for _ in range(1000):
        try:
            return server.take()
        except RecordsInUse:
            asyncio.run(asyncio.sleep(0.01))
    raise AssertionError("nobody let go")


def test_a_lock_that_is_held_is_kept(first: SingleServer) -> None:
    first.look()
    first.look()


def _lose(database: Database) -> None:
    """As when its file is removed, or its connection is cut."""
    if database.address.is_sqlite:
        database.address.path.with_name(database.address.path.name + ".lock").unlink()
        return
    cut = (
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
        "WHERE starts_with(application_name, 'regatta serve ') AND datname = current_database()"
    )
    database.run_here(lambda connection: connection.execute(text(cut)))


def test_a_lock_that_was_lost_is_taken_again(first: SingleServer, database: Database) -> None:
    _lose(database)
    first.look()
    with pytest.raises(RecordsInUse):
        SingleServer(database.address).take()


def test_who_lost_it_to_another_is_told_to_leave(first: SingleServer, database: Database) -> None:
    _lose(database)
    second = SingleServer(database.address)
    second.take()
    told: list[str] = []
    asyncio.run(first.keep(told.append, every=0))
    assert len(told) == 1
    assert "another server" in told[0]
    second.release()


def test_a_server_leaves_whose_file_was_moved_away(tmp_path: Path) -> None:
    path, told = tmp_path / "team.db", []
    database = Database(f"sqlite:///{path}")
    server = SingleServer(database.address)
    server.take()
    try:
        path.rename(tmp_path / "elsewhere.db")  # before its first look
        asyncio.run(server.keep(told.append, every=0.01))
        path.touch()  # another one, in its place
        with pytest.raises(BrokenDatabase):
            server.look()
    finally:
        server.release()
        database.close()
    assert "Put the right one there" in told[0]


def test_a_connection_of_ours_that_postgresql_takes_for_alive_is_no_other_server(
    postgresql: PostgreSQL,
) -> None:
    """The network was cut: we have lost our connection, and PostgreSQL has not noticed."""
    server = SingleServer(read_url(postgresql.new_database()))
    server.take()
    kept = server._lock._connection  # type: ignore[attr-defined]
    server._lock._connection = None  # type: ignore[attr-defined]
    server.look()
    assert server._lock.held
    server.release()
    kept.invalidate()
    kept.close()


def test_while_postgresql_is_away_the_server_stays_and_has_its_lock_again_afterwards() -> None:
    own = PostgreSQL().start()
    try:
        address = read_url(own.new_database())
        server = SingleServer(address)
        server.take()
        own.stop()
        for _ in range(2):
            with pytest.raises(RecordsAway):
                server.look()
        own.start()
        server.look()
        with pytest.raises(RecordsInUse, match=r"127\.0\.0\.1, since"):
            SingleServer(address).take()
        server.release()
    finally:
        own.remove()
