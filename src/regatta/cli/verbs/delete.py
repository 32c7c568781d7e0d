"""`regatta delete`: end jobs and forget them."""

from __future__ import annotations

import click

from regatta.cli.names import for_each, job_argument, one_or_more
from regatta.cli.outcomes import Exit
from regatta.cli.settings import Settings, pass_settings, verb


@verb("delete")
@job_argument(several=True)
@click.option("--all", "every", is_flag=True, help="Every job of the namespace.")
@pass_settings
def command(settings: Settings, names: tuple[str, ...], every: bool) -> Exit:
    """Delete jobs: running ones are stopped, and records and logs are removed."""
    one_or_more(names, every, "delete")
    client = settings.connect()
    if every:
        names = tuple(job.name for job in client.jobs(settings.namespace))
        if not names:
            print("No jobs.")

    def delete(name: str) -> None:
        client.delete(settings.namespace, name)
        print(f"job {name} deleted", flush=True)

    return for_each(list(names), delete, settings)
