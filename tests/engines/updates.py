"""What streams of an engine told, in words that tests can compare."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from regatta.api.job import Job
from regatta.engines.base import Gone, LogBatch, WatchUpdate


def told(watch: Iterator[WatchUpdate]) -> str:
    """The next update of a watch."""
    match next(watch):
        case Job() as job:
            return f"{job.name} {job.status.phase or 'new'}"
        case Gone(_, name):
            return f"{name} gone"
        case other:
            return str(other)


def until(watch: Iterator[WatchUpdate], wanted: str) -> list[str]:
    """All that was told, up to that."""
    seen = [told(watch)]
    while seen[-1] != wanted:
        seen.append(told(watch))
    return seen


def lines_of(updates: Iterable[Any], replica: str = "worker-0") -> list[str]:
    """What one replica printed, of all that a log or a follower told."""
    return [
        line.text
        for update in updates
        if isinstance(update, LogBatch)
        for line in update.lines
        if line.pod == replica
    ]
