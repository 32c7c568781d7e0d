"""`regatta run`: submit, follow, exit with the job's result."""

from __future__ import annotations

from typing import Any

import click

from regatta.cli.follow.attached import Attached
from regatta.cli.outcomes import Exit
from regatta.cli.settings import Settings, pass_settings, verb
from regatta.cli.show.output import output_option
from regatta.cli.show.overview import plan_lines
from regatta.cli.show.rows import handle
from regatta.cli.submit.command_line import submission_options
from regatta.cli.submit.hand_in import hand_in
from regatta.cli.submit.role_commands import RoleCommands


@verb("run", RoleCommands)
@submission_options
@click.option("-d", "--detach", is_flag=True, help="Return once the job is submitted.")
@output_option("yaml", "json")
@pass_settings
def command(settings: Settings, /, detach: bool, output: str | None, **options: Any) -> Exit:
    """Submit the job in FILE, follow its logs, and exit with its result.

    FILE is a job file, a folder that holds job.yaml, or - for standard input. A finished job of
    the same name makes room; a live one is only ended with --replace. Ctrl-C leaves the job
    running; a second one stops it.

    Exits with 0 only if the job completed: 1 failed, 2 invalid, 3 stopped, 130 detached.
    """
    job = hand_in(settings, options, output)
    if job is None:
        return Exit.OK
    print("\n".join(plan_lines(job, settings.paint)), end="\n\n", flush=True)
    if detach:
        print(f"job {job.name} submitted; `regatta logs -f {handle(job)}` follows it")
        return Exit.OK
    return Attached(settings, job).follow()
