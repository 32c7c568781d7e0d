"""A team's database, asked by many, and away: it answers again by itself once it is back."""

from __future__ import annotations

import asyncio
import sqlite3
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection, insert, select
from sqlalchemy.engine import URL
from sqlalchemy.exc import IntegrityError

from regatta.api.errors import BadSetting, BrokenDatabase, RecordsAway, RecordsFull
from regatta.server.records import team_database
from regatta.server.records.job_tables import gaps, tags
from regatta.server.records.team_database import Database
from tests.server.records.postgresql import PASSWORD, USER, PostgreSQL


def _add(connection: Connection, number: int) -> None:
    connection.execute(insert(gaps).values(from_at=number, until_at=number))


def _numbers(connection: Connection) -> list[int]:
    return list(connection.scalars(select(gaps.c.from_at).order_by(gaps.c.from_at)))


def test_what_was_run_is_kept(database: Database, url: str) -> None:
    asyncio.run(database.run(_add, 1))
    again = Database(url)
    assert asyncio.run(again.read(_numbers)) == [1]
    again.close()


def test_what_raises_leaves_nothing(database: Database) -> None:
    def fail(connection: Connection) -> None:
        _add(connection, 1)
        raise KeyError("no")

    with pytest.raises(KeyError):
        asyncio.run(database.run(fail))
    assert asyncio.run(database.read(_numbers)) == []


def test_a_reader_cannot_write(database: Database) -> None:
    with pytest.raises(RecordsAway, match=r"read-only|cannot be written"):
        asyncio.run(database.read(_add, 1))
    asyncio.run(database.run(_add, 2))
    assert asyncio.run(database.read(_numbers)) == [2]


def test_many_at_once_each_write(database: Database) -> None:
    async def all_at_once() -> None:
        writes = [database.run(_add, number) for number in range(100)]
        reads = [database.read(_numbers) for _ in range(50)]
        await asyncio.gather(*writes, *reads)

    asyncio.run(all_at_once())
    assert asyncio.run(database.read(_numbers)) == list(range(100))


def test_the_loop_goes_on_while_a_transaction_takes_its_time(database: Database) -> None:
    async def both() -> None:
        may_end = threading.Event()
        slow = asyncio.create_task(database.run(lambda _: may_end.wait(60)))
        assert await database.read(_numbers) == []
        may_end.set()
        assert await slow

    asyncio.run(both())


def test_a_mistake_of_ours_stays_what_it_is(database: Database) -> None:
    def twice(connection: Connection) -> None:
        connection.execute(insert(gaps).values(id=1, from_at=1, until_at=1))
        connection.execute(insert(gaps).values(id=1, from_at=1, until_at=1))

    with pytest.raises(IntegrityError) as failed:
        asyncio.run(database.run(twice))
    assert "hide_parameters" in str(failed.value)


def test_a_row_that_points_nowhere_is_refused(database: Database) -> None:
    def point_nowhere(_: Connection) -> None:
        """On a second connection: the first one was opened for the migration."""
        database.run_here(lambda c: c.execute(insert(tags).values(job_id="x", tag="y")))

    with pytest.raises(IntegrityError):
        database.read_here(point_nowhere)


# SQLite


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "team/records.sqlite"


@pytest.fixture
def file(path: Path) -> Iterator[Database]:
    database = Database(f"sqlite:///{path}")
    yield database
    database.close()


def test_all_files_are_their_owners_alone(file: Database, path: Path) -> None:
    file.run_here(_add, 1)
    files = list(path.parent.iterdir())
    assert len(files) == 4  # what SQLite has beside it, and room for making room
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_copy_that_others_could_read_is_its_owners_alone_once_it_is_opened(
    file: Database, path: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As a backup is, before somebody starts with it."""
    file.run_here(_add, 1)
    copy = tmp_path / "copy.db"
    with sqlite3.connect(path) as source, sqlite3.connect(copy) as target:
        source.backup(target)
    for connection in (source, target):
        connection.close()
    copy.chmod(0o644)

    opened = Database(f"sqlite:///{copy}")
    opened.run_here(_add, 2)

    assert {stat.S_IMODE(each.stat().st_mode) for each in tmp_path.glob("copy.db*")} == {0o600}
    assert f"{copy} could be read by others (644)" in caplog.text
    opened.close()


def test_a_file_that_somebody_else_locked_is_away_until_they_let_go(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(team_database, "BUSY_MILLIS", 10)
    file = Database(f"sqlite:///{path}")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(RecordsAway, match=r"holds it locked; end that one\. Jobs run on"):
        file.run_here(_add, 1)
    assert file.read_here(_numbers) == []
    other.execute("ROLLBACK")
    other.close()
    file.run_here(_add, 1)
    assert file.read_here(_numbers) == [1]
    file.close()


def test_a_full_disk_is_away_until_there_is_room(file: Database) -> None:
    def limit(connection: Connection, pages: int) -> None:
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")

    def fill(connection: Connection) -> None:
        limit(connection, 1)  # no more than there are
        for number in range(2000):
            connection.execute(insert(gaps).values(from_at=number, until_at=0, why="x" * 4000))

    with pytest.raises(RecordsFull, match="its disk is full; make room"):
        file.run_here(fill)
    assert file.read_here(_numbers) == []
    file.run_here(limit, 1 << 30)
    file.run_here(_add, 1)
    assert file.read_here(_numbers) == [1]


def test_a_file_that_is_no_database_is_told_and_left_alone(path: Path) -> None:
    path.parent.mkdir()
    path.write_text("these are my notes, and no database\n" * 200)
    with pytest.raises(BrokenDatabase, match=r"file is not a database.*Restore it"):
        Database(f"sqlite:///{path}")
    assert path.read_text().startswith("these are my notes")


def test_a_file_that_is_gone_is_not_begun_anew_where_something_of_it_is_left(path: Path) -> None:
    """SQLite itself would throw away what was written last, though it is all there."""
    url, moved = f"sqlite:///{path}", path.with_name("moved")
    database = Database(url)
    database.run_here(_add, 7)
    path.rename(moved)
    database.close()  # which cannot write it into a file that is elsewhere
    with pytest.raises(BrokenDatabase, match=r"is still in .*-wal\. Put the file back beside that"):
        Database(url)
    assert not path.exists()
    moved.rename(path)
    again = Database(url)
    assert again.read_here(_numbers) == [7]
    again.close()


def test_a_file_that_is_gone_is_not_begun_anew_where_all_records_were_in_it(path: Path) -> None:
    url = f"sqlite:///{path}"
    Database(url, kept_in="/somewhere/else.db").close()
    path.unlink()
    with pytest.raises(BrokenDatabase, match=r"To begin without, make an empty file there"):
        Database(url, kept_in=str(path))
    path.touch(mode=0o600)
    Database(url, kept_in=str(path)).close()


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "team").write_text("a file")
    with pytest.raises(BadSetting, match=r"cannot be made \(.*\); name a file"):
        Database(f"sqlite:///{tmp_path}/team/records.sqlite")


# PostgreSQL


@pytest.fixture
def own() -> Iterator[PostgreSQL]:
    """One that may be stopped."""
    server = PostgreSQL().start()
    yield server
    server.remove()


@pytest.mark.parametrize("at_once", [False, True], ids=["shut down", "killed"])
def test_postgresql_that_is_restarted_under_use_is_away_and_then_there(
    own: PostgreSQL, at_once: bool
) -> None:
    database = Database(own.new_database())

    async def use() -> None:
        await asyncio.gather(*(database.run(_add, number) for number in range(8)))
        in_use = asyncio.create_task(
            database.run(lambda c: c.exec_driver_sql("SELECT pg_sleep(60)"))
        )
        while not await database.read(
            lambda c: c.exec_driver_sql(
                "SELECT count(*) FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(60)'"
            ).scalar()
        ):
            await asyncio.sleep(0.01)
        own.stop(at_once=at_once)
        with pytest.raises(RecordsAway, match="see that it runs and can be reached"):
            await in_use
        for _ in range(3):
            with pytest.raises(RecordsAway) as away:
                await database.run(_add, 100)
            assert PASSWORD not in str(away.value)
            assert away.value.status == 503
        own.start()
        # All of them, though the pool holds connections of the server before.
        await asyncio.gather(*(database.run(_add, number) for number in range(8, 16)))
        assert await database.read(_numbers) == list(range(16))

    asyncio.run(use())
    database.close()


def test_a_server_that_is_not_there_is_told_at_the_start_without_the_password(
    own: PostgreSQL,
) -> None:
    url = own.new_database()
    own.stop()
    with pytest.raises(RecordsAway, match=rf"PostgreSQL test_\d+ at 127.0.0.1:{own.port}") as away:
        Database(url)
    assert PASSWORD not in str(away.value)


@pytest.mark.parametrize(
    ("user", "password", "name", "said"),
    [
        (USER, "not-that-one", "postgres", f'password authentication failed for user "{USER}"'),
        (USER, "", "postgres", "no password supplied"),
        ("stranger", "not-that-one", "postgres", 'authentication failed for user "stranger"'),
        (USER, PASSWORD, "nowhere", 'database "nowhere" does not exist'),
        ("locked_out", "not-that-one", "postgres", 'role "locked_out" is not permitted to log in'),
        ("not_there", "not-that-one", "closed", 'permission denied for database "closed"'),
    ],
)
def test_who_is_not_let_in_is_told_so_without_the_password(
    own: PostgreSQL, user: str, password: str, name: str, said: str
) -> None:
    for statement in (
        "CREATE ROLE locked_out NOLOGIN PASSWORD 'not-that-one'",
        "CREATE ROLE not_there LOGIN PASSWORD 'not-that-one'",
        "CREATE DATABASE closed",
        "REVOKE CONNECT ON DATABASE closed FROM PUBLIC",
    ):
        own.execute(statement)
    url = URL.create("postgresql", user, password or None, "127.0.0.1", own.port, name)
    with pytest.raises(RecordsAway) as away:
        Database(url.render_as_string(hide_password=False))
    told = str(away.value)
    assert f"at 127.0.0.1:{own.port}) refuses us: " in told
    assert said in told
    assert "; look at user, password and database of its URL. Jobs run on; " in told
    for wrong in ("does not answer", "can be reached", "not-that-one", PASSWORD):
        assert wrong not in told
