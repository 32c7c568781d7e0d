"""`regatta stop`: end jobs, keep their records."""

from __future__ import annotations

import click

from regatta.cli.job_names import for_each, job_argument, one_or_more
from regatta.cli.outcomes import Exit
from regatta.cli.settings import Settings, pass_settings, verb
from regatta.cli.show.rows import still_serves


@verb("stop")
@job_argument(several=True)
@click.option("--all", "every", is_flag=True, help="All that lives of the namespace.")
@pass_settings
def command(settings: Settings, names: tuple[str, ...], every: bool) -> Exit:
    """Stop jobs: their processes end, records and logs stay.

    On a finished job, ends the servers that it left running.
    """
    one_or_more(names, every, "stop")
    engine = settings.engine()
    if every:
        jobs = engine.list(settings.namespace)
        names = tuple(job.name for job in jobs if not job.finished or still_serves(job))
        if not names:
            print("No live jobs, and no finished ones that left something running.")

    def stop(name: str) -> None:
        job = engine.stop(settings.namespace, name)
        ended = f"what job {name} left running" if job.finished else f"job {name}"
        print(f"stopping {ended}", flush=True)

    return for_each(list(names), stop, settings)
