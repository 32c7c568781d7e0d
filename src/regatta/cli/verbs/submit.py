"""`regatta submit`: hand a job in, and perhaps wait for its end."""

from __future__ import annotations

from typing import Any

import click

from regatta.cli.follow.until import wait_for
from regatta.cli.outcomes import Exit
from regatta.cli.settings import Settings, pass_settings, verb
from regatta.cli.show.output import dump, output_option, plain
from regatta.cli.show.overview import ending_lines
from regatta.cli.show.rows import handle
from regatta.cli.submit.command_line import submission_options
from regatta.cli.submit.hand_in import hand_in
from regatta.cli.submit.role_commands import RoleCommands


@verb("submit", RoleCommands)
@submission_options
@click.option("--wait", is_flag=True, help="Wait for the job's end and exit with its result.")
@output_option("yaml", "json")
@pass_settings
def command(settings: Settings, /, wait: bool, output: str | None, **options: Any) -> Exit:
    """Submit the job in FILE and return.

    FILE is a job file, a folder that holds job.yaml, or - for standard input.
    """
    job = hand_in(settings, options, output)
    if job is None:
        return Exit.OK
    if output:
        print(dump(plain(job), output), flush=True)
    else:
        print(f"job {job.name} submitted", flush=True)
        if not wait:
            print(f"  follow it:  regatta logs -f {handle(job)}")
            print(f"  stop it:    regatta stop {handle(job)}")
    if not wait:
        return Exit.OK
    ended, code = wait_for(settings, job.namespace, job.name, "finished", None, job.uid)
    if ended is not None and not output:
        print(settings.page(ending_lines(ended, settings.paint)))
    return code
