"""Which lines of a job's logs somebody asked for: the same on every engine."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from regatta.api.errors import BadRequest, NotPossible
from regatta.api.job import Job
from regatta.controller.changes import no_such_role
from regatta.engines.base import LogQuery
from regatta.engines.logs.matcher import Matcher

#: Lines are searched, and told, so many at a time; fewer of long ones. Whoever reads slowly has a
#: server hold two such batches.
BATCH = 500
LARGEST_BATCH = 256 * 1024
#: An endless line is shown in pieces of this.
LONGEST_LINE = 64 * 1024


def timestamp(moment: datetime) -> str:
    """In UTC with nine digits, so that text compares as time does."""
    try:
        return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f000Z")
    except OverflowError:
        raise BadRequest(f"{moment.isoformat()} is no time between the years 1 and 9999") from None


def check_query(job: Job, query: LogQuery, *, follow: bool) -> None:
    """Raises RegattaError for what cannot be asked for."""
    if query.role is not None and query.role not in job.spec.roles():
        raise no_such_role(job, query.role)
    if query.attempt is None:
        return
    if query.previous:
        raise BadRequest("previous and attempt both say which try is meant; give one of them")
    if follow:
        raise BadRequest("an attempt is shown as it was, and not followed; give one of the two")
    if not 0 <= query.attempt <= job.status.attempt:
        count = job.status.attempt + 1
        raise NotPossible(
            f"job {job.name} has had {count} attempt{'' if count == 1 else 's'}, and none beyond"
        )


def is_chosen(query: LogQuery, role: str, index: int) -> bool:
    return query.role in (None, role) and query.index in (None, index)


def listed(replicas: Sequence[str]) -> str:
    more = f" and {len(replicas) - 8} more" if len(replicas) > 8 else ""
    return ", ".join(replicas[:8]) + more


def is_whole(count: int, length: int) -> bool:
    """Whether so many lines, of so many characters together, are a batch."""
    return count >= BATCH or length >= LARGEST_BATCH


class LineFilter:
    """By time and by pattern. A pattern is a person's, and may be one that never ends: it is
    searched for in a process of its own, within bounds. Blocks; close it."""

    def __init__(self, query: LogQuery) -> None:
        """Raises RegattaError for what is no regular expression."""
        #: As a timestamp; empty: from the beginning.
        self.since = "" if query.since is None else timestamp(query.since)
        self._matcher = None if query.grep is None else Matcher(query.grep)

    @property
    def has_pattern(self) -> bool:
        return self._matcher is not None

    def matches(self, texts: Sequence[str]) -> list[bool]:
        """Which have the pattern."""
        if self._matcher is None:
            return [True] * len(texts)
        found: list[bool] = []
        for start in range(0, len(texts), BATCH):
            found += self._matcher.matches(list(texts[start : start + BATCH]))
        return found

    def close(self) -> None:
        if self._matcher is not None:
            self._matcher.close()
