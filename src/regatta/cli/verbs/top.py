"""`regatta top`: what the machine or the cluster has, what jobs hold, what they really use."""

from __future__ import annotations

import sys
import time

import click

from regatta.cli.outcomes import Exit
from regatta.cli.settings import Settings, pass_settings, verb
from regatta.cli.show.output import dump, output_option, plain
from regatta.cli.show.usage import capacity_lines

REFRESH_SECONDS = 2.0


@verb("top")
@click.option("-A", "--all-namespaces", is_flag=True, help="Jobs of every namespace.")
@click.option("-w", "--watch", is_flag=True, help="Refresh every two seconds.")
@output_option("json", "yaml")
@pass_settings
def command(settings: Settings, all_namespaces: bool, watch: bool, output: str | None) -> Exit:
    """Show what the machine has, what jobs hold of it, and what their replicas use now.

    On a cluster: what its nodes have, what the pods of jobs ask of them, and, where a
    metrics-server measures it, what they use.
    """
    while True:
        _show(settings, None if all_namespaces else settings.namespace, watch, output)
        if not watch:
            return Exit.OK
        time.sleep(REFRESH_SECONDS)


def _show(settings: Settings, namespace: str | None, watch: bool, output: str | None) -> None:
    capacity = settings.engine().capacity(namespace)
    if output:
        print(dump(plain(capacity), output), flush=True)
        return
    lines = capacity_lines(capacity, settings.paint, namespaces=namespace is None)
    if watch and settings.terminal:
        sys.stdout.write("\x1b[H\x1b[2J")
    print("\n".join(lines), flush=True)
    for note in capacity.notes:
        click.echo(f"note: {note}", err=True)
