"""Which lines of a log somebody asked for."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta, timezone

import pytest
from msgspec.structs import replace

from regatta.api.errors import NotPossible, RegattaError
from regatta.api.job import Job, JobSpec, JobStatus, Metadata, Mode, RoleSpec
from regatta.engines.base import LogLine, LogQuery
from regatta.engines.logs.selection import LineFilter, check_query, is_chosen, timestamp

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
ONE = RoleSpec(replicas=1, template={})
JOB = Job(
    metadata=Metadata(name="mnist"),
    spec=JobSpec(mode=Mode.PS, ps=ONE, worker=ONE),
)


def line(text: str, at: datetime = NOON) -> LogLine:
    return LogLine("worker-0", timestamp(at), "stdout", text)


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (NOON, "2026-01-02T12:00:00.000000000Z"),
        (NOON + timedelta(microseconds=5), "2026-01-02T12:00:00.000005000Z"),
        (NOON.astimezone(timezone(timedelta(hours=8))), "2026-01-02T12:00:00.000000000Z"),
    ],
    ids=["whole", "with its part", "of another zone"],
)
def test_a_time_is_written_so_that_text_compares_as_time_does(moment: datetime, text: str) -> None:
    assert timestamp(moment) == text


@pytest.mark.parametrize(
    ("query", "chosen"),
    [
        (LogQuery(), ["ps-0", "worker-0", "worker-1"]),
        (LogQuery(role="worker"), ["worker-0", "worker-1"]),
        (LogQuery(index=0), ["ps-0", "worker-0"]),
        (LogQuery(role="worker", index=1), ["worker-1"]),
        (LogQuery(index=7), []),
    ],
    ids=["all", "a role", "an index", "both", "nobody"],
)
def test_replicas_are_chosen_by_role_and_index(query: LogQuery, chosen: list[str]) -> None:
    replicas = [("ps", 0), ("worker", 0), ("worker", 1)]
    assert [f"{r}-{i}" for r, i in replicas if is_chosen(query, r, i)] == chosen


def test_a_role_that_the_job_has_not_is_refused_with_those_it_has() -> None:
    check_query(JOB, LogQuery(role="ps"), follow=True)
    with pytest.raises(NotPossible, match="mnist has no role 'heter'; its roles are ps, worker"):
        check_query(JOB, LogQuery(role="heter"), follow=True)


@pytest.mark.parametrize(
    ("query", "follow", "said"),
    [
        (LogQuery(attempt=2), False, "mnist has had 2 attempts, and none beyond"),
        (LogQuery(attempt=0, previous=True), False, "give one of them"),
        (LogQuery(attempt=0), True, "not followed"),
    ],
    ids=["not there yet", "two tries at once", "one that is over"],
)
def test_a_try_that_cannot_be_shown_is_refused(query: LogQuery, follow: bool, said: str) -> None:
    tried_twice = replace(JOB, status=JobStatus(attempt=1))
    check_query(tried_twice, LogQuery(attempt=1), follow=False)
    with pytest.raises(RegattaError, match=said):
        check_query(tried_twice, query, follow=follow)


def test_more_lines_than_a_batch_are_all_searched() -> None:
    with closing(LineFilter(LogQuery(grep="7$"))) as wanted:
        found = wanted.matches([str(number) for number in range(1234)])
    assert sum(found) == 123
    assert found[1227]


def test_what_is_no_pattern_is_refused_at_once() -> None:
    with pytest.raises(RegattaError, match="is not a regular expression"):
        LineFilter(LogQuery(grep="("))
