"""`regatta wait`: until a job is in a state, or the time is up."""

from __future__ import annotations

import click

from regatta.cli.follow.until import STATES, wait_for
from regatta.cli.job_names import job_argument
from regatta.cli.options import duration
from regatta.cli.outcomes import Exit
from regatta.cli.settings import Settings, pass_settings, verb
from regatta.cli.show.rows import phase_of


@verb("wait")
@job_argument()
@click.option(
    "--for",
    "state",
    type=click.Choice(list(STATES)),
    default="finished",
    show_default=True,
    help="The state to wait for.",
)
@click.option(
    "--timeout",
    type=duration,
    metavar="TIME",
    help="Give up after this time (30s, 5m, 1h): exit code 124.",
)
@pass_settings
def command(settings: Settings, name: str, state: str, timeout: float | None) -> Exit:
    """Wait until job NAME is in a state.

    Exits with 0 when the state was reached. With --for=finished, and when the job ended in
    another way than was waited for, exits with the job's result: 1 failed, 3 stopped.
    """
    job, code = wait_for(settings, settings.namespace, name, state, timeout)
    print(f"job {name} is {phase_of(job) if job and state != 'deleted' else 'deleted'}")
    return code
