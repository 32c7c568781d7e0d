"""`regatta get`: the jobs there are, one row each."""

from __future__ import annotations

import click

from regatta.api.errors import JobNotFound
from regatta.api.job import Job
from regatta.cli.job_names import as_jobs_are_called, complete_names, not_here
from regatta.cli.other_words import KINDS
from regatta.cli.outcomes import Exit, Stop
from regatta.cli.settings import Settings, pass_settings, verb
from regatta.cli.show import rows
from regatta.cli.show.output import dump, listing, output_option, plain
from regatta.cli.show.table import Cell, column_widths, table
from regatta.cli.show.times import now
from regatta.cli.signing_in import elsewhere
from regatta.engines.listing import ended_last

#: Finished jobs that a list without names shows.
ENDED_SHOWN = 100


@verb("get")
@click.argument(
    "names",
    metavar="[NAME]...",
    nargs=-1,
    shell_complete=complete_names,
    callback=as_jobs_are_called,
)
@click.option("-A", "--all-namespaces", is_flag=True, help="Jobs of every namespace.")
@click.option("--all", "older", is_flag=True, help="Also jobs that ended long ago.")
@click.option("-w", "--watch", is_flag=True, help="Go on and print each change.")
@output_option("wide", "json", "yaml")
@pass_settings
def command(
    settings: Settings,
    names: tuple[str, ...],
    all_namespaces: bool,
    older: bool,
    watch: bool,
    output: str | None,
) -> Exit:
    """List jobs, or show the ones that are named.

    PS and WORKER count the replicas that run, of a finished job the servers that it left running;
    WORKER counts all replicas of a job that has named tasks instead. Without names: all that live,
    and the 100 that ended last (--all: every one).
    """
    listed = Listing(settings, names, all_namespaces, output, None if older else ENDED_SHOWN)
    try:
        if watch:
            listed.watch()
        else:
            listed.show()
    except JobNotFound:
        if names[0] not in KINDS:
            raise
        right = " ".join(["regatta get", *names[1:]])
        raise Stop(
            Exit.CONFLICT,
            f"there is no job named {names[0]}, and `regatta get` needs no such word",
            f"Write `{right}`.",
        ) from None
    return Exit.OK


class Listing:
    def __init__(
        self,
        settings: Settings,
        names: tuple[str, ...],
        every: bool,
        output: str | None,
        ended: int | None,
    ) -> None:
        self._settings = settings
        self._names = names
        self._namespace = None if every else settings.namespace
        self._output = output if output != "wide" else None
        self._wide = output == "wide"
        self._every = every
        #: How many finished jobs are listed; None: all, as where names are given.
        self._ended = None if names else ended

    def show(self) -> None:
        engine = self._settings.engine()
        if self._names and self._namespace is not None:
            jobs = [engine.get(self._namespace, name) for name in self._names]
        else:
            listed = engine.list(self._namespace, finished=self._ended and self._ended + 1)
            jobs = self._newest([job for job in listed if self._wanted(job)])
        if jobs or not self._names:
            self._print(jobs)
        self._check(jobs)

    def _newest(self, jobs: list[Job]) -> list[Job]:
        """Without the finished ones that are too many, and a word about them."""
        shown = ended_last(jobs, self._ended)
        if len(shown) < len(jobs):
            click.echo(
                f"Jobs that ended before the last {self._ended} are left out: `regatta get --all` "
                "lists them, `regatta history` every run.",
                err=True,
            )
        return shown

    def _print(self, jobs: list[Job]) -> None:
        if self._output:
            one = len(self._names) == 1 and len(jobs) == 1
            print(dump(plain(jobs[0]) if one else listing(jobs), self._output))
        elif jobs:
            print(self._settings.page(self._table(jobs)))
            for line in rows.trouble_lines(jobs):
                click.echo(f"warning: {line}", err=True)
        else:
            where = "" if self._namespace is None else f" in namespace {self._namespace}"
            click.echo(f"No jobs{where}. `regatta run FILE` starts one.", err=True)
            for line in elsewhere(self._settings):
                click.echo(line, err=True)

    def _check(self, jobs: list[Job]) -> None:
        """A name without a job is an error, not an empty list."""
        found = {job.name for job in jobs}
        if missing := [name for name in self._names if name not in found]:
            raise not_here(missing, self._namespace)

    def watch(self) -> None:
        from regatta.cli.follow.lost_server import say_away
        from regatta.engines.base import Lost, Synced

        first: list[Job] = []
        shown: dict[tuple[str, str], list[str]] = {}
        widths: list[int] | None = None
        name = self._names[0] if len(self._names) == 1 else None
        for update in self._settings.engine().watch(self._namespace, name):
            if isinstance(update, Synced) and widths is None:
                self._check(first)
                first = self._newest(first)
                widths = self._begin(first)
                shown = {(job.namespace, job.name): self._said(job) for job in first}
            elif isinstance(update, Lost):
                say_away(self._settings)
            elif isinstance(update, Job) and self._wanted(update):
                if widths is None:
                    first.append(update)
                elif self._output:
                    print(dump(plain(update), self._output), flush=True)
                elif shown.get((update.namespace, update.name)) != self._said(update):
                    shown[update.namespace, update.name] = self._said(update)
                    lines = table((), [self._row(update)], self._settings.paint, widths=widths)
                    print(self._settings.page(lines), flush=True)

    def _begin(self, jobs: list[Job]) -> list[int]:
        if self._output:
            for job in jobs:
                print(dump(plain(job), self._output), flush=True)
        else:
            print(self._settings.page(self._table(jobs)), flush=True)
        return column_widths(self._headers(), [self._row(job) for job in jobs])

    def _wanted(self, job: Job) -> bool:
        return not self._names or job.name in self._names

    def _table(self, jobs: list[Job]) -> list[str]:
        return table(self._headers(), [self._row(job) for job in jobs], self._settings.paint)

    def _headers(self) -> list[str]:
        return rows.headers(wide=self._wide, namespaces=self._every)

    def _said(self, job: Job) -> list[str]:
        """Its row but for its age, which is no change."""
        age = self._headers().index("AGE")
        return [str(cell) for number, cell in enumerate(self._row(job)) if number != age]

    def _row(self, job: Job) -> list[Cell]:
        return rows.row(job, now(), wide=self._wide, namespaces=self._every)
