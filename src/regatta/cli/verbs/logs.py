"""`regatta logs`: what the replicas of a job printed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import click

from regatta.api.errors import JobNotFound
from regatta.cli.follow.lost_server import say_away
from regatta.cli.job_names import job_argument, meant, role_meant, uid_option
from regatta.cli.options import duration
from regatta.cli.outcomes import Exit, Stop
from regatta.cli.settings import Settings, pass_settings, verb
from regatta.cli.show.log_printer import LogPrinter
from regatta.cli.show.output import output_option
from regatta.cli.show.times import now
from regatta.engines.base import (
    Gone,
    JobUpdate,
    LogBatch,
    LogLine,
    LogQuery,
    LogUpdate,
    Lost,
    Remark,
)


@verb("logs")
@job_argument(required=False)
@uid_option()
@click.option("-f", "--follow", is_flag=True, help="Go on until the job has ended.")
@click.option("--role", metavar="ROLE", help="Only replicas of this role.")
@click.option("--index", type=click.IntRange(min=0), help="Only the replica with this index.")
@click.option("-p", "--previous", is_flag=True, help="The run before the present one.")
@click.option(
    "--attempt",
    type=click.IntRange(min=1),
    metavar="N",
    help="As it was in the job's Nth try: restarts and resumes each make one.",
)
@click.option(
    "--since", type=duration, metavar="TIME", help="Only lines newer than this (30s, 5m, 2h)."
)
@click.option("--tail", type=click.IntRange(min=0), help="Only the last lines of each replica.")
@click.option("--grep", metavar="REGEX", help="Only lines that match a regular expression.")
@click.option("--timestamps", is_flag=True, help="Print when each line was written.")
@output_option("json")
@pass_settings
def command(
    settings: Settings,
    name: str | None,
    uid: str,
    follow: bool,
    role: str | None,
    index: int | None,
    previous: bool,
    attempt: int | None,
    since: float | None,
    tail: int | None,
    grep: str | None,
    timestamps: bool,
    output: str | None,
) -> Exit:
    """Print the logs of job NAME, each line after the replica it came from.

    Logs stay until the job is deleted or retention takes them, also those of replicas that were
    cleaned up. On a cluster a log goes with its pod.
    """
    if attempt is not None and (previous or follow):
        other = "--previous" if previous else "-f"
        raise click.UsageError(f"--attempt shows one try as it was; leave out {other}, or it")
    run = meant(settings, name, uid, "logs")
    name, uid = (run.name, run.uid) if run else (str(name), "")
    role = role_meant(settings, name, role, uid)
    if role is not None or index is not None:
        _check(settings, name, uid, role, index)
    query = LogQuery(
        uid=uid,
        role=role,
        index=index,
        previous=previous,
        attempt=None if attempt is None else attempt - 1,
        since=None if since is None else now() - timedelta(seconds=since),
        tail=tail,
        grep=grep,
    )
    printer = LogPrinter(settings.paint, timestamps=timestamps, terminal=settings.terminal)
    try:
        for update in _stream(settings, name, query, follow):
            match update:
                case LogBatch(lines) if lines and output:
                    print("\n".join(map(_as_json, lines)), flush=follow)
                case LogBatch(lines) if lines:
                    print("\n".join(map(printer.line, lines)), flush=follow)
                case Remark(text):
                    click.echo(f"-- {text}", err=True)
                case Lost():
                    say_away(settings)
                case Gone():
                    break
    except JobNotFound:
        if not uid:
            _refuse_a_replica(settings, name)
        raise
    return Exit.OK


def _stream(
    settings: Settings, name: str, query: LogQuery, follow: bool
) -> Iterator[JobUpdate] | Iterator[LogUpdate]:
    engine = settings.engine()
    if follow:
        return engine.follow(settings.namespace, name, query, status=False)
    return engine.logs(settings.namespace, name, query)


def _refuse_a_replica(settings: Settings, name: str) -> None:
    """`demo-worker-0`, as the pod is called on a cluster, is told how it is asked for here."""
    job, role, index = ["", "", *name.rsplit("-", 2)][-3:]
    try:
        roles = settings.engine().get(settings.namespace, job).spec.roles() if job else {}
    except JobNotFound:
        return
    if role not in roles or not index.isdecimal():
        return
    raise Stop(
        Exit.CONFLICT,
        f"there is no job named {name}; it is a replica of job {job}",
        f"Write `regatta logs {job} --role {role} --index {index}`.",
    )


def _check(settings: Settings, name: str, uid: str, role: str | None, index: int | None) -> None:
    """A replica that never was is an error, not an empty log."""
    engine = settings.engine()
    job = engine.get(settings.namespace, name, uid)
    counts = {
        known: spec.replicas for known, spec in job.spec.roles().items() if role in (None, known)
    }
    if not counts:
        raise Stop(
            Exit.CONFLICT,
            f"job {name} has no role {role!r}",
            f"Its roles are {', '.join(job.spec.roles())}.",
        )
    if index is None or index < max(counts.values()):
        return
    # Scaling down leaves the logs of replicas that are no longer wanted.
    pods = engine.pods(job.namespace, job.name, uid)
    if not any(pod.role in counts and pod.index == index for pod in pods):
        there = ", ".join(f"{known} {count}" for known, count in counts.items())
        raise Stop(
            Exit.CONFLICT,
            f"job {name} has no replica with index {index}",
            f"Indexes start at 0; replicas of each role: {there}.",
        )


def _as_json(line: LogLine) -> str:
    import msgspec

    fields = {"replica": line.pod, "at": line.at, "stream": line.stream, "text": line.text}
    return msgspec.json.encode(fields).decode()
