"""Under which names the roles of a list's jobs are told, when their documents must be read."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from regatta.api.job import document
from regatta.api.load import load_job
from regatta.api.openpai.wanted import Setting
from regatta.server.openpai.jobs.telling import role_names as of_roles
from regatta.server.openpai.jobs.telling.role_names import AT_ONCE, role_names
from regatta.server.records.submits import begin_submit
from regatta.server.records.team_database import Database
from tests.openpai_configs import a_task_role, version_one
from tests.server.openpai.jobs.test_task_answers import a_row
from tests.server.records.rows import a_new_job

WAITS = {"state": "WAITING", "protocol": 1, "message": "ps-server-0: ErrImagePull"}
CONFIG = version_one("j", a_task_role("ps_server", "true"))
JOB = msgspec.json.encode(document(load_job(CONFIG, setting=Setting(user="ann")).job)).decode()


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database(f"sqlite:///{tmp_path}/records.sqlite")
    yield database
    database.close()


def names_told(database: Database, count: int, **row: object) -> dict[str, str]:
    """By job, what `ps-server` is called in a list of so many."""
    rows = [a_row(**{**WAITS, "id": f"id-{number}", **row}) for number in range(count)]
    for one in rows:
        database.run_here(
            begin_submit, a_new_job(one.id, id=one.id, documents={"job": JOB, "config": "x"})
        )
    told = asyncio.run(role_names(database, rows))
    return {job_id: names["ps-server"] for job_id, names in told.items()}


def test_roles_of_all_in_a_long_list_are_told_in_their_authors_names(database: Database) -> None:
    told = names_told(database, 2 * AT_ONCE + 1)
    assert (len(told), set(told.values())) == (2 * AT_ONCE + 1, {"ps_server"})


def test_of_long_documents_some_are_read_and_no_more(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(of_roles, "MOST_READ", AT_ONCE * len(JOB))
    monkeypatch.setattr(of_roles, "AT_ONCE", 10)
    assert len(names_told(database, 3 * AT_ONCE)) == AT_ONCE + 10


def test_of_a_job_that_says_nothing_no_document_is_read(database: Database) -> None:
    assert names_told(database, 1, message="") == {}
