"""`regatta scale`: another number of replicas."""

from __future__ import annotations

import click

from regatta.cli.job_names import job_argument, role_meant
from regatta.cli.outcomes import Exit
from regatta.cli.settings import Settings, pass_settings, verb


@verb("scale")
@job_argument()
@click.option(
    "--replicas", type=click.IntRange(min=1), required=True, help="How many there shall be."
)
@click.option("--role", default="worker", show_default=True, help="Of which role.")
@pass_settings
def command(settings: Settings, name: str, replicas: int, role: str) -> Exit:
    """Change the number of replicas of a role of job NAME.

    Replicas whose environment changes are restarted; training goes on from its checkpoint.
    """
    role = role_meant(settings, name, role) or role
    settings.engine().scale(settings.namespace, name, role, replicas)
    print(f"job {name}: {role} is scaled to {replicas}")
    return Exit.OK
