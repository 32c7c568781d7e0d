"""Which parts of a status the brain must not forget, and which only show what can be seen again.

What it must not forget (attempts, counts, reasons, ends) has to be on record before anything of
the plan is done. What a look at the children brings back (how many run, since when, why one waits)
may be written later, where a write is dear: an engine decides how much later, not what.
"""

from __future__ import annotations

from msgspec.structs import replace

from regatta.api.job import JobStatus, Phase, RoleStatus
from regatta.controller.plan import Plan

#: The way to work: which of these it is follows from the pods.
_ON_THE_WAY = (Phase.PENDING, Phase.STARTING, Phase.RUNNING)
#: Events that only retell what can be seen; all others announce something that must be on record.
_TELLS_NO_NEWS = frozenset({"Created", "Starting", "Running"})


def only_shows(stored: JobStatus, status: JobStatus, plan: Plan, *, told: bool) -> bool:
    """Whether nothing is lost if `status`, which comes with `plan`, is not written yet.

    `told`: somebody has been told the addresses of the pods that there are now.
    """
    if plan.stop or plan.delete or plan.environments or plan.delete_job:
        return False
    if any(event.reason not in _TELLS_NO_NEWS for event in plan.events):
        return False
    if stored.phase is None and status.phase in _ON_THE_WAY and not told:
        return True  # the first size and revision follow from the spec: nothing to forget yet
    return remembered(stored, told=told) == remembered(status, told=told)


def remembered(status: JobStatus, *, told: bool) -> JobStatus:
    """The status without what is only for show."""
    return replace(
        status,
        phase=None if status.phase in _ON_THE_WAY else status.phase,
        message="",
        conditions=(),
        start_time=None,
        started_awake=None,
        heartbeat_awake=None,
        observed_generation=0,
        ps=_of_role(status.ps, told),
        worker=_of_role(status.worker, told),
        heter=_of_role(status.heter, told),
        tasks={name: _in_role(role, told) for name, role in status.tasks.items()},
    )


def _of_role(role: RoleStatus | None, told: bool) -> RoleStatus | None:
    return None if role is None else _in_role(role, told)


def _in_role(role: RoleStatus, told: bool) -> RoleStatus:
    return replace(
        role,
        pending=0,
        starting=0,
        running=0,
        failed=0,
        succeeded=0,
        unknown=0,
        ready="",
        # A pod that goes before anybody was told its address is simply made again.
        refs=role.refs if told else (),
    )
