"""Deadline, hang timeout and time to live: how long until each strikes, measured from the status.

They are functions of the time that is passed in, so none can be missed with an event: a plan only
says when to look again.
"""

from __future__ import annotations

from regatta.api.job import Job, Phase
from regatta.controller.plan import Instant
from regatta.controller.world import Children

#: A finished job stays so long whatever its time to live, for whoever waits to see its end.
SEEN_SECONDS = 3.0

#: Seconds; from the tenth failure on, doubling would go beyond it.
LONGEST_PAUSE = 300.0


def until_deadline(job: Job, now: Instant) -> float | None:
    """Seconds of run time left; waiting in a queue, suspension and machine sleep do not count."""
    limit = job.spec.run_policy.active_deadline_seconds
    if limit is None or job.status.started_awake is None:
        return None
    return limit - (now.awake - job.status.started_awake)


def until_hung(job: Job, now: Instant, children: Children) -> float | None:
    """Seconds left for the next sign of life, from the last one or from when the job ran."""
    limit = job.spec.run_policy.hang_timeout_seconds
    since = job.status.heartbeat_awake
    running = job.status.phase is Phase.RUNNING
    if limit is None or since is None or not running or not children.hears_progress:
        return None
    return limit - (now.awake - max(since, children.heartbeat_awake or since))


def until_expired(job: Job, now: Instant) -> float | None:
    ttl = job.spec.run_policy.ttl_seconds_after_finished
    if ttl is None or job.status.completion_time is None:
        return None
    return max(ttl, SEEN_SECONDS) - (now.wall - job.status.completion_time).total_seconds()


def until_restart(job: Job, now: Instant) -> float | None:
    """Never longer than the whole pause: if more seems to be left, a clock was set back, nobody
    knows how much of it has passed, and once without it does no harm."""
    at = job.status.restart_at
    if at is None:
        return None
    left = (at - now.wall).total_seconds()
    return left if 0 < left <= pause_before(job.status.restarts) else None


def pause_before(failures: int) -> float:
    """1 s after the first failure, doubling: a program that always fails must not spin."""
    return LONGEST_PAUSE if failures > 9 else 2.0 ** (failures - 1)


def soonest(*seconds: float | None) -> float | None:
    due = [max(value, 0.0) for value in seconds if value is not None]
    return min(due) if due else None
