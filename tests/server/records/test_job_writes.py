"""What people do to a record."""

from __future__ import annotations

import pytest
from sqlalchemy import Table, func, insert, select

from regatta.api.errors import NoRecord, NotPossible
from regatta.server.openpai_states import SubState
from regatta.server.records.job_lists import list_jobs
from regatta.server.records.job_rows import job_by_id, job_of
from regatta.server.records.job_tables import attempts, documents, events, jobs, replicas, tags
from regatta.server.records.job_writes import (
    MOST_TAGS,
    add_tag,
    delete_record,
    mark_stop,
    remove_tag,
    unmark_stop,
)
from regatta.server.records.submits import begin_submit
from regatta.server.records.team_database import Database
from tests.server.records.rows import NOW, a_new_job, store

ID = "id-ann-train"


@pytest.mark.parametrize("state", ["WAITING", "RUNNING"])
def test_a_job_is_stopping_from_the_moment_somebody_asked(database: Database, state: str) -> None:
    doing = SubState.RUNNING if state == "RUNNING" else SubState.PREPARING
    database.run_here(store, [_a_row(state) | {"sub_state": doing}])
    database.run_here(mark_stop, "one")
    row = database.read_here(job_by_id, "one")
    assert (row.state, row.execution_type) == ("STOPPING", "STOP")
    database.run_here(unmark_stop, "one")
    row = database.read_here(job_by_id, "one")
    assert (row.state, row.execution_type) == (state, "START")


@pytest.mark.parametrize("state", ["SUCCEEDED", "FAILED", "STOPPED", "UNKNOWN"])
def test_a_job_that_is_over_stays_what_it_is(database: Database, state: str) -> None:
    database.run_here(store, [_a_row(state)])
    database.run_here(mark_stop, "one")
    row = database.read_here(job_by_id, "one")
    assert (row.state, row.execution_type) == (state, "START")


def _a_row(state: str) -> dict[str, object]:
    return {"id": "one", "submit_state": "accepted", "submitted_at": NOW, "state": state}


def test_a_job_has_so_many_tags_and_no_more(database: Database) -> None:
    database.run_here(begin_submit, a_new_job())
    for number in range(MOST_TAGS):
        database.run_here(add_tag, ID, f"t{number}")
    database.run_here(add_tag, ID, "t0")
    with pytest.raises(NotPossible, match="remove one first"):
        database.run_here(add_tag, ID, "more")
    assert len(database.read_here(job_of, "ann", "train").tags) == MOST_TAGS


def test_tags_are_kept_once_and_taken_away(database: Database) -> None:
    database.run_here(begin_submit, a_new_job())
    for tag in ("b", "a", "b"):
        database.run_here(add_tag, ID, tag)
    assert database.read_here(job_of, "ann", "train").tags == ("a", "b")
    assert database.run_here(remove_tag, ID, "a")
    assert not database.run_here(remove_tag, ID, "a")
    assert database.read_here(job_of, "ann", "train").tags == ("b",)


def test_a_deleted_record_is_gone_for_everybody_with_all_that_was_said_in_it(
    database: Database,
) -> None:
    database.run_here(begin_submit, a_new_job(documents={"config": "secret"}, tags=("t",)))
    rows: list[tuple[Table, dict[str, object]]] = [
        (attempts, {"number": 0}),
        (replicas, {"uid": "p", "role": "worker", "replica_index": 0, "last_seen_at": 1}),
        (events, {"engine_id": 1, "at": 1}),
    ]
    for table, row in rows:
        database.run_here(lambda c, t, r: c.execute(insert(t).values(job_id=ID, **r)), table, row)
    database.run_here(delete_record, ID, NOW)
    assert database.read_here(list_jobs).total == 0
    with pytest.raises(NoRecord):
        database.read_here(job_of, "ann", "train")
    for table in (documents, tags, attempts, replicas, events):
        count = select(func.count()).select_from(table)
        assert database.read_here(lambda c, q: c.scalar(q), count) == 0
    assert database.read_here(lambda c: c.scalar(select(jobs.c.search))) == ""


@pytest.mark.parametrize(
    "write", [mark_stop, lambda c, i: delete_record(c, i, NOW), lambda c, i: add_tag(c, i, "t")]
)
def test_of_a_record_that_is_not_there_that_is_said(database: Database, write: object) -> None:
    database.run_here(begin_submit, a_new_job())
    database.run_here(delete_record, ID, NOW)
    for job_id in (ID, "nobody"):
        with pytest.raises(NoRecord, match="it may have been deleted"):
            database.run_here(write, job_id)  # type: ignore[arg-type]


def test_what_a_program_printed_can_be_kept_whatever_it_is(database: Database) -> None:
    odd = a_new_job(documents={"config": "nul \0, half \ud800, whole 😀"})
    database.run_here(begin_submit, odd)
    kept = database.read_here(lambda c: c.scalar(select(documents.c.text)))
    assert kept == "nul \N{REPLACEMENT CHARACTER}, half \N{REPLACEMENT CHARACTER}, whole 😀"
