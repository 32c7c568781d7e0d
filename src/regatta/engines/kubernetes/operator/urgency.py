"""Which changes of a status must be on record at once, and which can wait a second.

A status write costs an API server as much as five pods: it checks the whole job against its
schema. What the brain must not forget (attempts, counts, reasons, ends) is written before anything
is done. What it would find again by looking (how many run, since when, why one waits) is written
at most once a second, so that a starting job's pods come first.
"""

from __future__ import annotations

import random
from typing import Any

from msgspec.structs import replace

from regatta.api.job import JobStatus, Phase, RoleStatus
from regatta.controller.plan import Plan

#: How often what can wait is brought up to date.
EVERY = 1.0
#: The same when there is more to do than the API server takes at once.
BUSY_EVERY = 5.0
#: Seconds between two such writes, over all jobs: a fifth of one processor of the API server.
APART = 0.05

_ON_THE_WAY = (None, Phase.PENDING, Phase.STARTING, Phase.RUNNING)
#: Events that only retell what can be seen; all others announce something that must be on record.
_TELLS_NO_NEWS = frozenset({"Created", "Starting", "Running"})


def can_wait(stored: JobStatus, status: JobStatus, plan: Plan, *, environment: bool) -> bool:
    """`environment`: somebody has been told the addresses of the pods that there are now."""
    if plan.stop or plan.delete or plan.environments or plan.delete_job:
        return False
    if any(event.reason not in _TELLS_NO_NEWS for event in plan.events):
        return False
    if stored.phase is None and status.phase in _ON_THE_WAY and not environment:
        return True  # the first size and revision follow from the spec: nothing to forget yet
    return _memory(stored, environment) == _memory(status, environment)


class Pace:
    """When a status that can wait is written, so that all of them together are no burden."""

    def __init__(self) -> None:
        self._next = 0.0

    def wait(
        self, written_at: float, now: float, *, busy: bool, eager: bool = False
    ) -> float | None:
        """Seconds to look again after, or None to write now. `eager`: people wait for this one."""
        age = now - written_at
        if age < EVERY:
            return EVERY - age
        if age < BUSY_EVERY and (busy or (not eager and now < self._next)):
            return EVERY * random.uniform(0.5, 1.0)
        self._next = max(self._next, now) + APART
        return None


def _memory(status: JobStatus, environment: bool) -> JobStatus:
    def bare(role: RoleStatus | None) -> Any:
        return role and replace(
            role,
            pending=0,
            starting=0,
            running=0,
            failed=0,
            succeeded=0,
            unknown=0,
            ready="",
            # A pod that goes before anybody was told its address is simply made again.
            refs=role.refs if environment else (),
        )

    return replace(
        status,
        phase=None if status.phase in _ON_THE_WAY else status.phase,
        message="",
        conditions=(),
        start_time=None,
        started_awake=None,
        heartbeat_awake=None,
        observed_generation=0,
        ps=bare(status.ps),
        worker=bare(status.worker),
        heter=bare(status.heter),
        tasks={name: bare(role) for name, role in status.tasks.items()},
    )
