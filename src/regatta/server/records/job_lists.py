"""Which jobs a list shows, in which order: OpenPAI's query, answered by the database alone.

One scan finds the page and counts all that match. It reads ids, the column to sort by and what is
filtered; the rest is fetched for the page. Keywords are looked for in one column that holds owner,
name and virtual cluster in lower case, which both databases read alike, umlauts included.
"""

from __future__ import annotations

import enum
from typing import Any

import msgspec
from sqlalchemy import Connection, Select, false, func, not_, null, select
from sqlalchemy.sql import ColumnElement

from regatta.server.records.job_rows import SHOWN, JobRow, with_tags
from regatta.server.records.job_tables import jobs, tags
from regatta.server.records.metadata import storable

#: Stands between what is searched; no name can hold it.
_BETWEEN = "\x1f"


class SortBy(enum.StrEnum):
    """As a query spells it."""

    JOB_NAME = "jobName"
    SUBMISSION_TIME = "submissionTime"
    USERNAME = "username"
    VC = "vc"
    RETRIES = "retries"
    TOTAL_TASK_NUMBER = "totalTaskNumber"
    TOTAL_GPU_NUMBER = "totalGpuNumber"
    STATE = "state"
    COMPLETION_TIME = "completionTime"
    JOB_PRIORITY = "jobPriority"


_COLUMNS: dict[SortBy, ColumnElement[Any]] = {
    SortBy.JOB_NAME: jobs.c.name,
    SortBy.SUBMISSION_TIME: jobs.c.submitted_at,
    SortBy.USERNAME: jobs.c.username,
    SortBy.VC: jobs.c.virtual_cluster,
    SortBy.RETRIES: jobs.c.retries,
    SortBy.TOTAL_TASK_NUMBER: jobs.c.total_tasks,
    SortBy.TOTAL_GPU_NUMBER: jobs.c.total_gpus,
    SortBy.STATE: jobs.c.state,
    SortBy.COMPLETION_TIME: jobs.c.completed_at,
    SortBy.JOB_PRIORITY: jobs.c.priority,
}


class JobFilter(msgspec.Struct, frozen=True, kw_only=True):
    """What a job must be to be listed. None: whatever; of several words one must fit."""

    usernames: tuple[str, ...] | None = None
    virtual_clusters: tuple[str, ...] | None = None
    states: tuple[str, ...] | None = None
    priorities: tuple[str, ...] | None = None
    #: Part of the owner's, the job's or the virtual cluster's name, in any case.
    keyword: str = ""
    #: One of these, and none of those.
    tags_contain: tuple[str, ...] = ()
    tags_not_contain: tuple[str, ...] = ()
    #: Whose jobs the asker may see. None: everybody's.
    visible_to: tuple[str, ...] | None = None


class Order(msgspec.Struct, frozen=True):
    """Equal ones are in order of submission, the last first, and then of their ids."""

    by: SortBy = SortBy.SUBMISSION_TIME
    descending: bool = True


EVERYTHING, NEWEST_FIRST = JobFilter(), Order()


class JobPage(msgspec.Struct, frozen=True):
    jobs: tuple[JobRow, ...]
    #: All that match, on whichever page.
    total: int


def list_jobs(
    connection: Connection,
    wanted: JobFilter = EVERYTHING,
    order: Order = NEWEST_FIRST,
    *,
    offset: int = 0,
    limit: int = 5000,
) -> JobPage:
    """Only what was accepted or is on its way; no record that was deleted."""
    found = connection.execute(page_query(wanted, order, offset, limit)).all()
    if found and found[0].total is not None:
        return JobPage(tuple(with_tags(connection, found)), found[0].total)
    # A page beyond the end has no row that could tell.
    counts = found or offset or not limit
    total = (connection.scalar(count_query(wanted)) or 0) if counts else 0
    return JobPage(tuple(with_tags(connection, found)), total)


def page_query(wanted: JobFilter, order: Order, offset: int, limit: int) -> Select[Any]:
    """The rows of a page, each with the number of all that match as `total`; None where
    `count_query` is to be asked for it.

    What looks at every row counts them as it goes. Where nothing is asked for but the first ones,
    an index has them at once, and counting with them would look at every row of all."""
    counted: ColumnElement[Any] = func.count().over() if wanted != EVERYTHING else null()
    scan = (
        select(
            jobs.c.id,
            jobs.c.submitted_at,
            _COLUMNS[order.by].label("sorted_by"),
            counted.label("total"),
        )
        .where(*_conditions(wanted))
        .order_by(*_ordering(order, _COLUMNS[order.by], jobs.c.submitted_at, jobs.c.id))
        .offset(offset)
        .limit(limit)
    )
    page = scan.subquery("page")
    return (
        select(*SHOWN, page.c.total)
        .join(page, page.c.id == jobs.c.id)
        .order_by(*_ordering(order, page.c.sorted_by, page.c.submitted_at, page.c.id))
    )


def searched(username: str, name: str, virtual_cluster: str) -> str:
    """What `jobs.search` holds of a job."""
    parts = (username, name, virtual_cluster)
    return _BETWEEN.join(storable(part).replace(_BETWEEN, " ") for part in parts).casefold()


def count_query(wanted: JobFilter) -> Select[Any]:
    return select(func.count(jobs.c.id)).where(*_conditions(wanted))


def _ordering(
    order: Order, by: ColumnElement[Any], submitted_at: ColumnElement[Any], job_id: Any
) -> tuple[ColumnElement[Any], ...]:
    """What has not ended is the latest of all: last upwards, first downwards."""
    first = by.desc().nulls_first() if order.descending else by.asc().nulls_last()
    return first, submitted_at.desc(), job_id


def _conditions(wanted: JobFilter) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = [
        jobs.c.deleted_at.is_(None),
        jobs.c.superseded_by.is_(None),
    ]
    words = {
        jobs.c.username: wanted.usernames,
        jobs.c.virtual_cluster: wanted.virtual_clusters,
        jobs.c.state: wanted.states,
        jobs.c.priority: wanted.priorities,
    }
    conditions += [column.in_(some) for column, some in words.items() if some is not None]
    if wanted.visible_to is not None:
        conditions.append(jobs.c.username.in_(wanted.visible_to))
    if wanted.keyword:
        conditions.append(_has_keyword(wanted.keyword))
    if wanted.tags_contain:
        conditions.append(_is_tagged(wanted.tags_contain))
    if wanted.tags_not_contain:
        conditions.append(not_(_is_tagged(wanted.tags_not_contain)))
    return conditions


def _has_keyword(keyword: str) -> ColumnElement[bool]:
    if _BETWEEN in keyword:
        return false()
    return jobs.c.search.contains(storable(keyword).casefold(), autoescape=True)


def _is_tagged(some: tuple[str, ...]) -> ColumnElement[bool]:
    return jobs.c.id.in_(select(tags.c.job_id).where(tags.c.tag.in_(some)))
