"""`regatta history`: the runs there were, newest first."""

from __future__ import annotations

import click

from regatta.cli.job_names import as_jobs_are_called, complete_names
from regatta.cli.outcomes import Exit, Stop
from regatta.cli.settings import Settings, pass_settings, verb
from regatta.cli.show import run_rows
from regatta.cli.show.output import dump, listing, output_option
from regatta.cli.show.table import table
from regatta.cli.show.times import now

SHOWN = 100


@verb("history")
@click.argument(
    "name",
    metavar="[NAME]",
    required=False,
    shell_complete=complete_names,
    callback=as_jobs_are_called,
)
@click.option("-A", "--all-namespaces", is_flag=True, help="Runs of every namespace.")
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=SHOWN,
    show_default=True,
    help="At most so many; 0: all.",
)
@output_option("json", "yaml")
@pass_settings
def command(
    settings: Settings, name: str | None, all_namespaces: bool, limit: int, output: str | None
) -> Exit:
    """List the runs of job NAME, or of all jobs, newest first.

    Also those that another of their name has replaced, and those whose time to live was over.
    `logs`, `describe` and `events` take the UID of a run (--uid). On a cluster only the jobs that
    are there are known.
    """
    namespace = None if all_namespaces else settings.namespace
    found = settings.engine().history(namespace, name, limit=limit + 1 if limit else None)
    runs = found[:limit] if limit else found
    if name is not None and not found:
        where = "any namespace" if namespace is None else f"namespace {namespace}"
        raise Stop(
            Exit.CONFLICT,
            f"there is no run of a job named {name} in {where}",
            "`regatta history -A` lists all runs.",
        )
    if output:
        print(dump(listing(runs), output))
    elif runs:
        rows = [run_rows.row(run, now(), namespaces=all_namespaces) for run in runs]
        headers = run_rows.headers(namespaces=all_namespaces)
        print(settings.page(table(headers, rows, settings.paint)))
    else:
        where = "" if namespace is None else f" in namespace {namespace}"
        click.echo(f"No runs{where}.", err=True)
    if len(found) > len(runs):
        click.echo(f"There are older ones; `--limit 0` lists all, not only {limit}.", err=True)
    return Exit.OK
