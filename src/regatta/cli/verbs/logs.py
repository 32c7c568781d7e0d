"""`regatta logs`: what the replicas of a job printed."""

from __future__ import annotations

from datetime import timedelta

import click

from regatta.cli.loglines import LogPrinter
from regatta.cli.names import job_argument
from regatta.cli.options import duration
from regatta.cli.outcomes import Exit
from regatta.cli.output import output_option
from regatta.cli.settings import Settings, pass_settings, verb
from regatta.cli.streams import follow_job
from regatta.cli.times import now
from regatta.engines.base import LogQuery
from regatta.engines.streams import Gone, Lines, Remark


@verb("logs")
@job_argument()
@click.option("-f", "--follow", is_flag=True, help="Go on until the job has ended.")
@click.option("--role", metavar="ROLE", help="Only replicas of this role.")
@click.option("--index", type=click.IntRange(min=0), help="Only the replica with this index.")
@click.option("-p", "--previous", is_flag=True, help="The run before the present one.")
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
    name: str,
    follow: bool,
    role: str | None,
    index: int | None,
    previous: bool,
    since: float | None,
    tail: int | None,
    grep: str | None,
    timestamps: bool,
    output: str | None,
) -> Exit:
    """Print the logs of job NAME, each line after the replica it came from.

    Logs stay until the job is deleted, also those of replicas that were cleaned up. On a cluster
    a log goes with its pod.
    """
    query = LogQuery(
        role=role,
        index=index,
        previous=previous,
        since=None if since is None else now() - timedelta(seconds=since),
        tail=tail,
        grep=grep,
        follow=follow,
    )
    printer = LogPrinter(settings.paint, timestamps=timestamps, terminal=settings.terminal)
    for update in follow_job(settings, settings.namespace, name, query, status=False):
        match update:
            case Lines(lines) if output:
                print("\n".join(map(_as_json, lines)), flush=follow)
            case Lines(lines):
                print("\n".join(map(printer.line, lines)), flush=follow)
            case Remark(text):
                click.echo(f"-- {text}", err=True)
            case Gone():
                break
    return Exit.OK


def _as_json(line: object) -> str:
    import msgspec

    from regatta.engines.base import LogLine

    assert isinstance(line, LogLine)
    fields = {"replica": line.pod, "at": line.at, "stream": line.stream, "text": line.text}
    return msgspec.json.encode(fields).decode()
