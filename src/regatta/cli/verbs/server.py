"""`regatta server`: the background server's life."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from regatta.cli.outcomes import Exit, Stop
from regatta.cli.settings import HELP_NAMES, Settings, Verb, pass_settings
from regatta.cli.show.output import dump, output_option, plain
from regatta.cli.show.times import age, since, size
from regatta.cli.team_here import team_here

if TYPE_CHECKING:
    from regatta.daemon.about import ServerInfo
    from regatta.engines.inventory import Storage


@click.group("server", context_settings=HELP_NAMES, invoke_without_command=True)
@click.pass_context
def command(context: click.Context) -> None:
    """Start, stop or look at the background server of this machine.

    Any command that needs the server starts it; it is restarted when it dies.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


@command.command("start", cls=Verb)
@pass_settings
def start(settings: Settings) -> Exit:
    """Start the server, unless it runs already."""
    from regatta.client.connect import server_info

    if (team := team_here(settings)) is not None:
        print(team.told())
        return Exit.OK
    info = server_info(settings.server)
    print(f"the server runs at {info.url} (process {info.pid}, version {info.version})")
    _warn(info)
    return Exit.OK


@command.command("stop", cls=Verb)
@pass_settings
def stop(settings: Settings) -> Exit:
    """Stop the server. Jobs go on running; the next server takes them up again."""
    from regatta.client.connect import stop_named_server
    from regatta.daemon.find import local_files
    from regatta.daemon.start import stop_server

    files = local_files()
    team = team_here(settings)
    if named := settings.server or (team.address.url if team else None):
        stop_named_server(named)  # a team's asks who stops it
        print(f"the server at {named} stops")
    elif stop_server(files):
        print("the server has stopped; jobs go on running")
    else:
        print("no server was running")
    return Exit.OK


@command.command("restart", cls=Verb)
@click.pass_context
def restart(context: click.Context) -> Exit:
    """Stop the server and start it again, so that it reads its settings. Jobs go on running."""
    if server := context.ensure_object(Settings).server:
        raise Stop(
            Exit.INVALID,
            f"{server} can be stopped from here, and not started",
            "Restart it where it runs. Without --server and REGATTA_SERVER this restarts the one "
            "of this machine.",
        )
    from regatta.daemon.find import local_files

    if (files := local_files()).is_team:
        raise Stop(
            Exit.INVALID,
            f"the jobs in {files.folder} are a team's, whose server can be stopped from here, and "
            "not started",
            "Restart it where it runs: Ctrl-C, then `regatta serve --team` again.",
        )
    context.invoke(stop)
    return context.invoke(start)  # type: ignore[no-any-return]


@command.command("status", cls=Verb)
@output_option("json", "yaml")
@pass_settings
def status(settings: Settings, output: str | None) -> Exit:
    """Show whether the server runs, where its files are, and what it keeps."""
    from regatta.api.errors import ServerUnreachable, Unauthorized
    from regatta.client.connect import connect, server_info
    from regatta.daemon.find import local_files

    files = local_files()
    team = team_here(settings)
    try:
        info = server_info(settings.server, start=False)
        storage = connect(settings.server, start=False).storage()
    except Unauthorized:
        if team is None:
            raise
        print(dump(plain(team.address), output) if output else team.told())
        return Exit.OK
    except ServerUnreachable as away:
        print(f"{away}\n  log: {files.log}", file=sys.stderr)
        return Exit.UNREACHABLE
    if output:
        print(dump({**plain(info), "storage": plain(storage)}, output))
        return Exit.OK
    kept = "restarted when it dies" if info.guarded else "in the foreground"
    kept += ", for a team" if team else ""
    print(f"running for {age(time.time() - info.started_at)} at {info.url}")
    print(f"  process: {info.pid}, {kept}")
    print(f"  version: {info.version}")
    if home := info.home or (str(files.folder) if team else ""):
        print(f"  state:   {home}")
    if info.guarded:
        print(f"  log:     {Path(info.home, files.log.name)}")
    for line in _kept(storage):
        print(f"  {line}")
    _warn(info)
    return Exit.OK


def _warn(info: ServerInfo) -> None:
    for notice in info.notices:
        click.echo(f"warning: {notice}", err=True)


def _kept(storage: Storage) -> list[str]:
    from regatta.controller.retention import in_words

    if storage.retention is None:  # a cluster's jobs are the cluster's to keep
        return []
    aside = ""
    if storage.aside_bytes:
        aside = f", and {size(storage.aside_bytes)} of jobs without records"
    ended = f", the first ended {age(since(storage.oldest))} ago" if storage.oldest else ""
    return [
        f"jobs:    {storage.live} live, {storage.finished} finished",
        f"runs:    {storage.runs} on record{ended}",
        f"logs:    {size(storage.log_bytes)}, of runs that ended {size(storage.ended_log_bytes)}"
        + aside,
        f"records: {size(storage.database_bytes)}",
        f"keeps:   of runs that have ended, {in_words(storage.retention)}",
    ]
