"""`regatta events`: what happened, oldest first."""

from __future__ import annotations

from collections.abc import Sequence

import click

from regatta.cli.follow.lost_server import say_away
from regatta.cli.job_names import as_jobs_are_called, complete_names, not_here, uid_option
from regatta.cli.outcomes import Exit, Stop
from regatta.cli.settings import Settings, pass_settings, verb
from regatta.cli.show.ansi import Painted
from regatta.cli.show.output import dump, listing, output_option, plain
from regatta.cli.show.table import Cell, table
from regatta.cli.show.times import age, since
from regatta.engines.blocking import Blocking
from regatta.engines.inventory import EventView

HEADERS = ("AGE", "TYPE", "REASON", "JOB", "MESSAGE")


@verb("events")
@click.argument(
    "name",
    metavar="[NAME]",
    required=False,
    shell_complete=complete_names,
    callback=as_jobs_are_called,
)
@uid_option()
@click.option("-A", "--all-namespaces", is_flag=True, help="Jobs of every namespace.")
@click.option("-f", "--follow", is_flag=True, help="Go on and print new events.")
@output_option("json", "yaml")
@pass_settings
def command(
    settings: Settings,
    name: str | None,
    uid: str,
    all_namespaces: bool,
    follow: bool,
    output: str | None,
) -> Exit:
    """Show what happened to job NAME, or to all jobs, oldest first."""
    if uid and (follow or all_namespaces):
        raise Stop(Exit.INVALID, "--uid names one run", "Leave --follow and --all-namespaces out.")
    namespace = None if all_namespaces else settings.namespace
    engine = settings.engine()
    if uid:
        run = engine.history(namespace, name, uid=uid)[0]
        name, uid = run.name, run.uid
    elif name is not None:
        _check(engine, namespace, name)
    if follow:
        _follow(settings, namespace, name, output)
        return Exit.OK
    found = engine.events(namespace, name, uid=uid)
    if output:
        print(dump(listing(found), output))
    elif found:
        every = all_namespaces
        print(settings.page(table(headers(every), event_rows(found, every), settings.paint)))
    else:
        click.echo("No events.", err=True)
    return Exit.OK


def _check(engine: Blocking, namespace: str | None, name: str) -> None:
    """A job that does not exist is an error, not an empty list."""
    if namespace is not None:
        engine.get(namespace, name)
    elif all(job.name != name for job in engine.list(None)):
        raise not_here([name], None)


def headers(every: bool) -> tuple[str, ...]:
    """`every`: of all namespaces, so that each has to say which."""
    return ("NAMESPACE", *HEADERS) if every else HEADERS


def event_rows(events: Sequence[EventView], every: bool = False) -> list[list[Cell]]:
    return [
        [
            *([event.namespace or "-"] if every else []),
            age(since(event.at)),
            Painted(event.type, "yellow" if event.type == "Warning" else ""),
            event.reason,
            event.job or "-",
            event.message.partition("\n")[0],
        ]
        for event in events
    ]


def _follow(
    settings: Settings, namespace: str | None, name: str | None, output: str | None
) -> None:
    print_header = output is None
    for event in settings.engine().follow_events(namespace, name):
        if not isinstance(event, EventView):
            say_away(settings)
            continue
        if output:
            print(dump(plain(event), output), flush=True)
            continue
        every = namespace is None
        widths = (*((16,) if every else ()), 5, 7, 20, 16)
        shown = headers(every) if print_header else ()
        print_header = False
        lines = table(shown, event_rows([event], every), settings.paint, widths=widths)
        print(settings.page(lines), flush=True)
