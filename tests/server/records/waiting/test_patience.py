"""A PostgreSQL that says nothing is away like one that is not there, for all who ask it."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, insert, select, text

from regatta.api.errors import RecordsAway
from regatta.server.records.database_url import read_url
from regatta.server.records.job_tables import gaps
from regatta.server.records.single_server import SingleServer
from regatta.server.records.team_database import READERS, Database
from regatta.server.records.waiting import patience
from tests.server.records.postgresql import PostgreSQL

SAID_NOTHING = r"does not answer: (it said nothing for|connection timeout expired)"


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "SILENT_SECONDS", 2.0)
    monkeypatch.setattr(patience, "SILENT_AFTER_REST", 1.0)


@pytest.fixture
def own() -> Iterator[PostgreSQL]:
    """One that may be frozen."""
    server = PostgreSQL().start()
    yield server
    server.remove()


@pytest.fixture
def database(own: PostgreSQL) -> Iterator[Database]:
    database = Database(own.new_database() + "?connect_timeout=2")
    yield database
    database.close()


def _add(connection: Connection, number: int) -> None:
    connection.execute(insert(gaps).values(from_at=number, until_at=number))


def _numbers(connection: Connection) -> list[int]:
    return list(connection.scalars(select(gaps.c.from_at).order_by(gaps.c.from_at)))


def test_everybody_is_told_and_is_answered_again_once_it_goes_on(
    own: PostgreSQL, database: Database
) -> None:
    many = 3 * READERS

    async def use() -> None:
        await asyncio.gather(*(database.run(_add, number) for number in range(many)))
        with own.frozen():
            for _ in range(2):  # on connections that there are, and on new ones
                asked = [
                    *(database.run(_add, 100 + number) for number in range(many)),
                    *(database.read(_numbers) for _ in range(many)),
                ]
                told = await asyncio.gather(*asked, return_exceptions=True)
                assert {type(each) for each in told} == {RecordsAway}
                assert "it is tried again at the next request" in str(told[0])
        writes = [database.run(_add, many + number) for number in range(many)]
        await asyncio.gather(*writes, *(database.read(_numbers) for _ in range(many)))
        assert await database.read(_numbers) == list(range(2 * many))

    asyncio.run(use())


@pytest.mark.parametrize("many", [1, 50], ids=["a statement", "many in one"])
def test_a_write_that_has_begun_is_given_up(own: PostgreSQL, database: Database, many: int) -> None:
    def begin(connection: Connection) -> None:
        _add(connection, 1)
        with own.frozen():
            rows = [{"from_at": number, "until_at": 0} for number in range(many)]
            connection.execute(insert(gaps), rows)

    with pytest.raises(RecordsAway, match=SAID_NOTHING):
        database.run_here(begin)
    assert database.read_here(_numbers) == []
    database.run_here(_add, 2)
    assert database.read_here(_numbers) == [2]


def test_what_is_too_large_to_be_sent_to_a_silent_one_is_given_up(
    own: PostgreSQL, database: Database
) -> None:
    def begin(connection: Connection) -> None:
        connection.execute(text("SELECT 1"))
        with own.frozen():
            connection.execute(text("SELECT :much"), {"much": "x" * (64 << 20)})

    with pytest.raises(RecordsAway, match=SAID_NOTHING):
        database.run_here(begin)
    assert database.read_here(_numbers) == []


def test_what_was_given_up_has_ended_before_anything_else_is_read(database: Database) -> None:
    """Else a COMMIT that was on its way could come after somebody looked what became of it."""
    with pytest.raises(RecordsAway, match=SAID_NOTHING):
        database.run_here(lambda c: c.execute(text("SELECT pg_sleep(600)")))
    sleeping = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%'"
    assert database.read_here(lambda c: c.scalar(text(sleeping))) == 0


def test_connections_that_fell_silent_while_they_rested_are_replaced(database: Database) -> None:
    """As where a firewall has forgotten them: nobody need be told."""
    pids: list[int] = []

    def hold(connection: Connection, most: int) -> None:
        """On several connections at once."""
        pids.append(connection.scalar(text("SELECT pg_backend_pid()")) or 0)
        if most > 1:
            database.run_here(hold, most - 1)

    database.run_here(hold, 3)
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        for number in range(3):
            database.run_here(_add, number)
        assert database.read_here(_numbers) == [0, 1, 2]
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def test_a_step_to_a_newer_format_may_take_its_time(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    from regatta.server.records import migrate

    def slow(connection: Connection) -> None:
        connection.execute(text("SELECT pg_sleep(3)"))
        _add(connection, 1)

    monkeypatch.setattr(migrate, "_migrate", slow)
    migrate.bring_up_to_date(database._engine)
    assert database.read_here(_numbers) == [1]


def test_one_that_is_silent_at_the_start_is_told(own: PostgreSQL) -> None:
    url = own.new_database() + "?connect_timeout=2"
    with own.frozen(), pytest.raises(RecordsAway, match=SAID_NOTHING):
        Database(url)


def test_while_it_is_silent_the_server_stays_and_has_its_lock_again_afterwards(
    own: PostgreSQL,
) -> None:
    server = SingleServer(read_url(own.new_database() + "?connect_timeout=2"))
    server.take()
    try:
        with own.frozen():
            for _ in range(2):
                with pytest.raises(RecordsAway, match=SAID_NOTHING):
                    server.look()
        server.look()
        assert server._lock.held
    finally:
        server.release()
