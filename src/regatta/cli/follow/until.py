"""Waiting for a job to be in a state: what counts as reached, and what can no longer come."""

from __future__ import annotations

import time

import click

from regatta.api.job import Job, Phase
from regatta.cli.follow.lost_server import say_away
from regatta.cli.follow.ticks import ticking
from regatta.cli.outcomes import BY_PHASE, Exit, Stop, replaced
from regatta.cli.settings import Settings
from regatta.cli.show.rows import handle, trouble
from regatta.engines.base import Gone, Lost, Synced
from regatta.engines.inventory import NOT_REMOVED

#: State → phases in which it is reached. A job that completed has also been running.
STATES: dict[str, frozenset[Phase]] = {
    "finished": frozenset({Phase.COMPLETED, Phase.FAILED, Phase.ABORTED}),
    "completed": frozenset({Phase.COMPLETED}),
    "failed": frozenset({Phase.FAILED}),
    "aborted": frozenset({Phase.ABORTED}),
    "running": frozenset({Phase.RUNNING, Phase.COMPLETED}),
    "suspended": frozenset({Phase.SUSPENDED}),
    "deleted": frozenset(),
}


def wait_for(
    settings: Settings,
    namespace: str,
    name: str,
    state: str,
    timeout: float | None,
    uid: str = "",
) -> tuple[Job | None, Exit]:
    """The job as it then was, and the exit code: 0 when the state was reached, the job's own
    result when it ended otherwise (`finished` always gives the job's result).

    `uid` is the job that is meant, else the first one seen is: another of its name that came
    meanwhile is not waited for.
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    job: Job | None = None
    told = ""
    for update in ticking(settings.engine().watch(namespace, name), 0.2):
        match update:
            case Job():
                uid = uid or update.uid
                if update.uid != uid:
                    if state == "deleted":
                        return job, Exit.OK
                    raise replaced(name, handle(update))
                job = update
                if (code := _settled(job, state)) is not None:
                    return job, code
                if (text := trouble(job)) != told:
                    told = text
                    if state == "deleted" and job.status.reason == NOT_REMOVED:
                        raise Stop(Exit.FAILED, f"job {name} is not gone yet: {text}")
                    if text:
                        click.echo(f"warning: {name}: {text}", err=True)
            case Lost():
                say_away(settings)
            case Gone() | Synced() if update != Synced() or job is None:
                return _absent(job, name, state)
        if deadline is not None and time.monotonic() > deadline:
            phase = job.status.phase if job else None
            raise Stop(
                Exit.TIMEOUT,
                f"job {name} was not {state} within {timeout:g} s; it is {phase or 'Pending'}",
                f"`regatta describe {name}` shows why it waits.",
            )
    raise AssertionError("a watch has no end")


def _settled(job: Job, state: str) -> Exit | None:
    phase = job.status.phase
    if phase is None or state == "deleted":
        return None
    if phase in STATES[state]:
        return BY_PHASE[phase] if state == "finished" else Exit.OK
    # Over, and not in the way that was asked for: it will never be.
    return max(BY_PHASE[phase], Exit.FAILED) if phase.final else None


def _absent(job: Job | None, name: str, state: str) -> tuple[Job | None, Exit]:
    if state == "deleted":
        return job, Exit.OK
    known = "was deleted meanwhile" if job else "does not exist"
    raise Stop(Exit.CONFLICT, f"job {name} {known}", "`regatta get -A` lists the jobs there are.")
