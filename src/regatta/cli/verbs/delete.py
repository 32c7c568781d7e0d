"""`regatta delete`: end jobs and forget them."""

from __future__ import annotations

import sys
import time
from datetime import datetime, timedelta
from typing import NamedTuple

import click

from regatta.api.errors import RegattaError
from regatta.cli.follow.ticks import ticking
from regatta.cli.job_names import for_each, job_argument
from regatta.cli.options import duration_with_unit
from regatta.cli.outcomes import Exit, Stop
from regatta.cli.settings import Settings, pass_settings, verb
from regatta.cli.show.times import now

#: A replica has 30 s to end unless its job says otherwise.
PATIENCE_SECONDS = 60.0
_STILL_THERE = "is being deleted: its replicas take their time to end"
#: Names of live jobs in a question.
NAMED = 5


@verb("delete")
@job_argument(several=True)
@click.option("--all", "every", is_flag=True, help="Every job of the namespace, and its history.")
@click.option("--finished", is_flag=True, help="Every finished job and run of the namespace.")
@click.option(
    "--older-than",
    type=duration_with_unit,
    metavar="TIME",
    help="With --finished: only what ended longer ago (12h, 7d, 2w).",
)
@click.option("-y", "--yes", is_flag=True, help="With --all: live jobs too, without asking.")
@pass_settings
def command(
    settings: Settings,
    names: tuple[str, ...],
    every: bool,
    finished: bool,
    older_than: float | None,
    yes: bool,
) -> Exit:
    """Delete jobs: running ones are stopped, and records and logs are removed.

    With a job go the earlier runs of its name. Returns when all is gone, or after a minute.
    """
    _one_way(names, every, finished, older_than)
    if names:
        return _delete_named(settings, names)
    if every:
        _ask(settings, yes)
    before = None if older_than is None else now() - timedelta(seconds=older_than)
    return _delete_many(settings, every, before)


def _one_way(names: tuple[str, ...], every: bool, finished: bool, older_than: float | None) -> None:
    """Refuses a command line that says nothing, or too much."""
    ways = [bool(names), every, finished]
    if not any(ways):
        raise Stop(
            Exit.INVALID,
            "which job? `regatta delete` needs a name, or --all or --finished",
            "`regatta get` lists the jobs there are.",
        )
    if sum(ways) > 1:
        raise Stop(
            Exit.INVALID,
            "`regatta delete` takes names, --all or --finished, and only one of these",
            "Leave the others out.",
        )
    if older_than is not None and not finished:
        raise Stop(
            Exit.INVALID,
            "--older-than goes by when a job ended",
            "Write --finished --older-than TIME.",
        )


def _ask(settings: Settings, yes: bool) -> None:
    """Live jobs are not taken along unawares."""
    live = [job.name for job in settings.engine().list(settings.namespace, finished=0)]
    if not live or yes:
        return
    named = ", ".join(live[:NAMED]) + (", ..." if len(live) > NAMED else "")
    verb = "is" if len(live) == 1 else "are"
    what = f"{_some(len(live), 'job')} {verb} not finished: {named}"
    if not (sys.stdin.isatty() and settings.terminal):
        raise Stop(
            Exit.CONFLICT,
            what,
            "Add --yes to end and delete them, and with them every finished job and earlier run; "
            "`regatta delete --finished` takes only these.",
        )
    everything = f"every job of namespace {settings.namespace}, finished ones and earlier runs too"
    if not click.confirm(f"{what}. Delete {everything}?"):
        raise Stop(Exit.CONFLICT, "nothing was deleted")


def _delete_named(settings: Settings, names: tuple[str, ...]) -> Exit:
    engine = settings.engine()
    uids: dict[str, str] = {}

    def delete(name: str) -> None:
        uid = _uid_of(settings, name)
        engine.delete(settings.namespace, name)
        uids[name] = uid

    # All are told before the first is waited for: their replicas end side by side.
    code = for_each(list(names), delete, settings)
    waited = _wait_until_gone(settings, uids)
    for name in uids:
        if name not in waited.stuck:
            print(f"job {name} {_STILL_THERE if name in waited.late else 'deleted'}", flush=True)
    waited.raise_if_stuck()
    return code


def _uid_of(settings: Settings, name: str) -> str:
    """Empty where only records may have the name."""
    from regatta.api.errors import JobNotFound

    try:
        return settings.engine().get(settings.namespace, name).uid
    except JobNotFound:
        return ""


def _delete_many(settings: Settings, live: bool, before: datetime | None) -> Exit:
    engine = settings.engine()
    jobs = runs = 0
    ending: dict[str, str] = {}
    left = 1
    while left:
        try:
            done = engine.delete_many(settings.namespace, live=live, ended_before=before)
        except RegattaError:
            if jobs or runs:  # by the calls before
                print(f"{_jobs_and_runs(jobs, runs)} deleted", flush=True)
            raise
        jobs, runs, left = jobs + done.jobs, runs + done.runs, done.left
        ending |= done.ending
        if left and settings.terminal:
            print(f"\r{jobs + runs + len(ending)} deleted, {left} to go\x1b[K", end="", flush=True)
    if settings.terminal:
        print("\r\x1b[K", end="")
    waited = _wait_until_gone(settings, ending)
    jobs += len(ending) - len(waited.late) - len(waited.stuck)
    if not (jobs or runs or ending):
        print(_nothing(live, before))
        return Exit.OK
    print(f"{_jobs_and_runs(jobs, runs)} deleted", flush=True)
    for name in waited.late:
        print(f"job {name} {_STILL_THERE}", flush=True)
    waited.raise_if_stuck()
    return Exit.OK


def _nothing(live: bool, before: datetime | None) -> str:
    if before is not None:
        return f"No job or run ended before {before:%Y-%m-%d %H:%M:%S} UTC."
    return "No jobs." if live else "No finished jobs."


def _jobs_and_runs(jobs: int, runs: int) -> str:
    earlier = f" and {_some(runs, 'earlier run')}" if runs else ""
    return _some(jobs, "job") + earlier


def _some(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


class Waited(NamedTuple):
    """What is not gone: whose replicas still end, and of what something cannot be removed."""

    late: list[str]
    stuck: dict[str, str]

    def raise_if_stuck(self) -> None:
        for name, why in self.stuck.items():
            raise Stop(Exit.FAILED, f"job {name} is not gone yet: {why}")


def _wait_until_gone(settings: Settings, uids: dict[str, str]) -> Waited:
    """For a minute at most. By name, the uid of the job that is meant."""
    from regatta.api.job import Job
    from regatta.cli.show.rows import trouble
    from regatta.engines.base import Gone, Synced
    from regatta.engines.inventory import NOT_REMOVED

    waited = dict(uids)
    stuck: dict[str, str] = {}
    seen: set[str] = set()
    told = ""
    deadline = time.monotonic() + PATIENCE_SECONDS
    only = next(iter(waited)) if len(waited) == 1 else None
    updates = ticking(settings.engine().watch(settings.namespace, only), 0.2) if waited else ()
    for update in updates:
        match update:
            case Job() if waited.get(update.name) == update.uid:
                seen.add(update.name)
                if update.status.reason == NOT_REMOVED:
                    stuck[update.name] = trouble(update)
                    del waited[update.name]
                elif (text := trouble(update)) not in ("", told):
                    told = text
                    click.echo(f"warning: {update.name}: {text}", err=True)
            case Job() | Gone():  # another of that name is there, or none
                waited.pop(update.name, None)
            case Synced():
                waited = {name: uid for name, uid in waited.items() if name in seen}
        if not waited or time.monotonic() > deadline:
            break
    return Waited(list(waited), stuck)
