"""Lists, against the same question answered in plain Python over the same rows."""

from __future__ import annotations

import os
import random
from typing import Any

import pytest
from sqlalchemy import Connection, event, insert

from regatta.server.records.job_lists import JobFilter, JobPage, Order, SortBy, list_jobs
from regatta.server.records.job_tables import documents
from regatta.server.records.team_database import Database
from tests.server.records.rows import (
    CLUSTERS,
    PIECES,
    PRIORITIES,
    STATES,
    TAGS,
    USERS,
    a_row,
    store,
)

SEED = int(os.environ.get("REGATTA_SEED", random.randrange(1 << 30)))
QUESTIONS = 300

FIELDS = {
    SortBy.JOB_NAME: "name",
    SortBy.SUBMISSION_TIME: "submitted_at",
    SortBy.USERNAME: "username",
    SortBy.VC: "virtual_cluster",
    SortBy.RETRIES: "retries",
    SortBy.TOTAL_TASK_NUMBER: "total_tasks",
    SortBy.TOTAL_GPU_NUMBER: "total_gpus",
    SortBy.STATE: "state",
    SortBy.COMPLETION_TIME: "completed_at",
    SortBy.JOB_PRIORITY: "priority",
}


def _oracle(rows: list[dict[str, Any]], wanted: JobFilter, order: Order) -> list[str]:
    found = [row for row in rows if row["deleted_at"] is None and _fits(row, wanted)]
    found.sort(key=lambda row: row["id"])
    found.sort(key=lambda row: row["submitted_at"], reverse=True)

    def key(row: dict[str, Any]) -> tuple[bool, Any]:
        value = row[FIELDS[order.by]]
        return (value is None, 0 if value is None else value)

    # Stable in both directions: equal ones stay as they are.
    found.sort(key=key, reverse=order.descending)
    return [row["id"] for row in found]


def _fits(row: dict[str, Any], wanted: JobFilter) -> bool:
    names = [row["username"], row["name"], row["virtual_cluster"]]
    some = (
        (row["username"], wanted.usernames),
        (row["virtual_cluster"], wanted.virtual_clusters),
        (row["state"], wanted.states),
        (row["priority"], wanted.priorities),
        (row["username"], wanted.visible_to),
    )
    return (
        all(words is None or value in words for value, words in some)
        and any(wanted.keyword.casefold() in name.casefold() for name in names)
        and (not wanted.tags_contain or bool(set(wanted.tags_contain) & set(row["tags"])))
        and not set(wanted.tags_not_contain) & set(row["tags"])
    )


def _a_filter(dice: random.Random) -> JobFilter:
    def some(words: tuple[str, ...]) -> tuple[str, ...] | None:
        return tuple(dice.sample(words, dice.randint(0, 3))) if dice.random() < 0.3 else None

    keyword = ""
    if dice.random() < 0.6:
        keyword = dice.choice(
            [*PIECES, "%", "_", "%%", "N-1", "b", "BÖ", "SS", "\x1f", "l-1\x1f", "\0"]
        )
    return JobFilter(
        usernames=some(USERS),
        virtual_clusters=some(CLUSTERS),
        states=some(STATES),
        priorities=some(PRIORITIES),
        keyword=keyword,
        tags_contain=some(TAGS) or (),
        tags_not_contain=some(TAGS) or (),
        visible_to=some(USERS),
    )


def test_every_list_is_what_plain_python_finds_in_the_same_rows(
    database: Database, record_property: Any
) -> None:
    record_property("questions asked of job lists", QUESTIONS)
    dice = random.Random(SEED)
    rows = [a_row(number, dice) for number in range(400)]
    database.run_here(store, rows)
    hits = 0
    for _ in range(QUESTIONS):
        wanted = _a_filter(dice)
        order = Order(dice.choice(list(SortBy)), dice.random() < 0.5)
        offset, limit = dice.choice((0, 0, 3, 1000)), dice.choice((0, 1, 7, 5000))
        expected = _oracle(rows, wanted, order)
        page = database.read_here(list_jobs, wanted, order, offset=offset, limit=limit)
        said = f"REGATTA_SEED={SEED}: {wanted}, {order}, {offset}, {limit}"
        assert [job.id for job in page.jobs] == expected[offset : offset + limit], said
        assert page.total == len(expected), said
        hits += bool(page.jobs)
    assert hits > QUESTIONS / 10  # or the questions are none


@pytest.mark.parametrize("by", SortBy)
@pytest.mark.parametrize("descending", [False, True], ids=["ASC", "DESC"])
def test_pages_together_are_the_whole_list(
    database: Database, by: SortBy, descending: bool
) -> None:
    dice = random.Random(7)
    database.run_here(store, [a_row(number, dice) for number in range(60)])
    order = Order(by, descending)
    whole = database.read_here(list_jobs, JobFilter(), order)
    pages = [
        database.read_here(list_jobs, JobFilter(), order, offset=n, limit=9)
        for n in range(0, 60, 9)
    ]
    assert [job.id for page in pages for job in page.jobs] == [job.id for job in whole.jobs]
    assert {page.total for page in pages} == {whole.total}


def test_a_list_shows_what_is_stored_with_its_tags(database: Database) -> None:
    dice = random.Random(3)
    rows = [{**a_row(number, dice), "deleted_at": None} for number in range(20)]
    database.run_here(store, rows)
    page: JobPage = database.read_here(list_jobs, order=Order(SortBy.JOB_NAME, False))
    by_id = {row["id"]: row for row in rows}
    assert len(page.jobs) == 20
    for job in page.jobs:
        for field, value in by_id[job.id].items():
            if field not in ("search", "deleted_at"):
                assert getattr(job, field) == value, field


def test_one_statement_finds_and_counts_and_reads_no_document(database: Database) -> None:
    dice = random.Random(5)
    rows = [{**a_row(number, dice), "deleted_at": None} for number in range(5)]
    database.run_here(store, rows)
    database.run_here(
        lambda c: c.execute(insert(documents).values(job_id=rows[0]["id"], kind="config", text="x"))
    )
    statements: list[str] = []

    def listen(connection: Connection) -> None:
        def note(_c: Any, _k: Any, statement: str, *_: Any) -> None:
            statements.append(statement)

        event.listen(connection, "before_cursor_execute", note)
        list_jobs(connection, JobFilter(keyword="j"), limit=2)

    database.read_here(listen)
    about_jobs = [said for said in statements if "FROM jobs" in said]
    assert len(about_jobs) == 1
    assert "count(*) OVER ()" in about_jobs[0]
    assert not any("job_documents" in said or "text" in said for said in statements)


def test_a_page_of_fifty_thousand_is_answered(database: Database) -> None:
    """Databases bound how many values a statement may carry."""
    dice = random.Random(1)
    rows = [{**a_row(number, dice), "deleted_at": None} for number in range(30_000)]
    database.run_here(store, rows)
    page = database.read_here(list_jobs, limit=50_000)
    assert page.total == len(page.jobs) == 30_000
    tagged = {row["id"]: row["tags"] for row in rows}
    assert all(job.tags == tagged[job.id] for job in page.jobs)
