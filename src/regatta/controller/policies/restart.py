"""One attempt has failed and another is due: what starts again, what it costs, and when."""

from __future__ import annotations

from datetime import timedelta

from regatta.api.job import WITHOUT_END, Job, Phase, RestartScope
from regatta.controller.judge import Kind, Verdict
from regatta.controller.observe import World, observe
from regatta.controller.plan import Event, Instant, Plan
from regatta.controller.policies.attempts import effective_scope, new_attempt_of, new_attempt_of_all
from regatta.controller.policies.failure import Fault, recent
from regatta.controller.policies.removal import remove
from regatta.controller.policies.timers import pause_before, until_restart
from regatta.controller.summary import summarise

#: Of a restart that was not the program's doing.
NOT_COUNTED = "not counted against backoffLimit"


def restart(job: Job, world: World, verdict: Verdict, now: Instant) -> Plan:
    assert verdict.fault is not None
    fault, used = verdict.fault, job.status.restarts
    pause = 0.0 if fault.free else pause_before(used + 1)
    changes = {
        "restarts": used if fault.free else used + 1,
        "restart_at": now.wall + timedelta(seconds=pause) if pause else None,
        "disruptions": (
            (*recent(job.status.disruptions, now), now.wall)
            if fault.free
            else job.status.disruptions
        ),
    }
    scope = effective_scope(job, world.children)
    if scope is RestartScope.JOB:
        after = new_attempt_of_all(job, **changes)
    else:
        whole_role = scope is RestartScope.ROLE
        after = new_attempt_of(job, fault.replicas, whole_role, **changes)

    world = observe(after, world.children)
    verdict = Verdict(
        kind=Kind.RESTART,
        phase=Phase.RESTARTING,
        reason=verdict.reason,
        message=_message(verdict, fault, job),
        fault=fault,
    )
    return Plan(
        status=summarise(after, world, verdict, now),
        delete=remove(world.stale),
        events=(_event(verdict, scope),),
        look_again=until_restart(after, now),
    )


def _message(verdict: Verdict, fault: Fault, job: Job) -> str:
    if fault.free:
        return f"{verdict.message}; starting again, {NOT_COUNTED}"
    limit, number = job.spec.run_policy.backoff_limit, job.status.restarts + 1
    counted = (
        f"failure {number}" if limit == WITHOUT_END else f"failure {number} of {limit} allowed"
    )
    return f"{verdict.message}; starting again ({counted})"


def _event(verdict: Verdict, scope: RestartScope) -> Event:
    what = {
        RestartScope.JOB: "all replicas",
        RestartScope.ROLE: "its role",
        RestartScope.REPLICA: "it alone",
    }[scope]
    return Event(type="Warning", reason="Restarting", message=f"{verdict.message}: {what}")
