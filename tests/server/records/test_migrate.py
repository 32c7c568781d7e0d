"""A database becomes what this release expects, from nothing and by several at once."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
import yaml
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, create_engine, inspect, text

import regatta.server.accounts.tables
import regatta.server.records.job_tables
from regatta.api.errors import NewerDatabase
from regatta.server.records.database_url import read_url
from regatta.server.records.formats import NEWEST
from regatta.server.records.job_rows import document_of
from regatta.server.records.metadata import METADATA
from regatta.server.records.migrate import settings
from regatta.server.records.submits import begin_submit
from regatta.server.records.team_database import Database
from tests.server.records.rows import a_new_job

# They hang their tables on METADATA.
assert regatta.server.records.job_tables
assert regatta.server.accounts.tables


def _differences(connection: Connection) -> list[Any]:
    # SQLite hands a default of '' back in another form than it was given.
    defaults = connection.dialect.name == "postgresql"
    options = {"compare_type": True, "compare_server_default": defaults}
    return compare_metadata(MigrationContext.configure(connection, opts=options), METADATA)


def test_the_steps_lead_from_nothing_to_the_tables_of_this_release(database: Database) -> None:
    assert database.read_here(_differences) == []


def test_the_newest_format_is_where_alembic_would_lead() -> None:
    assert ScriptDirectory.from_config(settings()).get_heads() == [NEWEST]


def test_checks_and_partial_indexes_are_there(database: Database) -> None:
    """Alembic does not compare them."""

    def look(connection: Connection) -> tuple[set[Any], dict[str, Any]]:
        seen = inspect(connection)
        checks = {check["name"] for check in seen.get_check_constraints("jobs")}
        indexes = {index["name"]: index for index in seen.get_indexes("jobs")}
        return checks, indexes["uq_jobs_username_name"]

    checks, named = database.read_here(look)
    assert checks == {"ck_jobs_submit_state", "ck_jobs_execution_type"}
    assert named["unique"]
    (where,) = (str(said) for key, said in named["dialect_options"].items() if "where" in key)
    assert "deleted_at IS NULL" in where


def test_a_database_that_is_up_to_date_is_left_alone(database: Database, url: str) -> None:
    database.run_here(
        lambda c: c.execute(text("INSERT INTO gaps (from_at, until_at) VALUES (1, 2)"))
    )
    Database(url).close()
    assert database.read_here(lambda c: c.scalar(text("SELECT count(*) FROM gaps"))) == 1


def test_configs_that_an_older_release_kept_as_yaml_are_json(url: str) -> None:
    config = {"name": "Größe", "taskRoles": {"ps_server": {"commands": ["echo $$; # no\n"]}}}
    new = a_new_job("one", documents={"config": yaml.safe_dump(config), "job": "{}"})
    address = read_url(url)
    if address.is_sqlite:
        address.path.parent.mkdir()
    old = create_engine(address.url)
    with old.begin() as connection:
        steps = settings()
        steps.attributes["connection"] = connection
        command.upgrade(steps, "0004")
        begin_submit(connection, new)
    old.dispose()

    database = Database(url)

    assert json.loads(database.read_here(document_of, new.id, "config") or "") == config
    assert database.read_here(document_of, new.id, "job") == "{}"
    database.close()


def test_a_database_of_a_newer_release_is_refused_and_left_alone(
    database: Database, url: str
) -> None:
    database.run_here(lambda c: c.execute(text("UPDATE alembic_version SET version_num = '9999'")))
    with pytest.raises(NewerDatabase, match=r"format 9999.*newer release.*Install that one again"):
        Database(url)
    assert (
        database.read_here(lambda c: c.scalar(text("SELECT version_num FROM alembic_version")))
        == "9999"
    )


def test_servers_that_migrate_at_once_do_not_break_it(url: str) -> None:
    program = (
        "import sys; from regatta.server.records.team_database import Database;"
        "print('ready', flush=True); sys.stdin.readline(); Database(sys.argv[1]).close()"
    )
    servers = [
        subprocess.Popen(
            [sys.executable, "-c", program, url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    for server in servers:
        assert server.stdout is not None
        server.stdout.readline()
    for server in servers:
        assert server.stdin is not None
        server.stdin.write("go\n")
        server.stdin.flush()
    ends = [server.communicate()[1] for server in servers]
    assert [server.returncode for server in servers] == [0] * 4, ends
    database = Database(url)
    assert database.read_here(_differences) == []
    database.close()
