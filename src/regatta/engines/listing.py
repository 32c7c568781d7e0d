"""Which of very many jobs a list shows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from regatta.api.job import Job

LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


def ended_last(jobs: Sequence[Job], most: int | None) -> list[Job]:
    """All that live, and of the others the `most` that ended last; in the order they came."""
    finished = [job for job in jobs if job.finished]
    if most is None or len(finished) <= most:
        return list(jobs)
    finished.sort(key=lambda job: job.status.completion_time or LONG_AGO, reverse=True)
    hidden = {job.uid for job in finished[most:]}
    return [job for job in jobs if job.uid not in hidden]
