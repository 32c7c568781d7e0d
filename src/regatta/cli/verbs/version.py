"""`regatta version`: of the client, and of the server if one runs."""

from __future__ import annotations

import click

from regatta import __version__
from regatta.api.errors import (
    BadAddress,
    NotRegatta,
    ServerHangs,
    ServerUnreachable,
    Unauthorized,
    WrongDoor,
)
from regatta.cli.engine_choice import LOCAL
from regatta.cli.outcomes import Exit
from regatta.cli.settings import Settings, pass_settings, verb
from regatta.cli.show.output import dump, output_option
from regatta.cli.team_here import team_here


@verb("version")
@output_option("json", "yaml")
@pass_settings
def command(settings: Settings, output: str | None) -> Exit:
    """Print the versions of client and server, or of the cluster. Starts no server."""
    far_end, access = settings.chosen.far_end, settings.chosen.access
    version, otherwise = _version(settings)
    if output:
        known = {"client": __version__, far_end: version}
        print(dump(known | ({"access": access} if access else {}), output))
    else:
        print(f"client {__version__}\n{far_end} {version or otherwise}")
        if settings.chosen.engine == LOCAL:
            _tell_of_team(settings)
        if access:
            print(f"access {access}")
    return Exit.OK


def _version(settings: Settings) -> tuple[str | None, str]:
    """What runs there, or why that is not known."""
    try:
        return settings.engine(start=False).version(), ""
    except (ServerHangs, WrongDoor):
        raise
    except Unauthorized:
        team = team_here(settings)
        sign_in = f": `regatta login {settings.server}` signs in" if settings.server else ""
        return team.address.version if team else None, f"runs, and does not know you{sign_in}"
    except (ServerUnreachable, NotRegatta, BadAddress):
        return None, "not running"  # no server, or none that would tell


def _tell_of_team(settings: Settings) -> None:
    try:
        team = team_here(settings)
    except ServerUnreachable as down:
        click.echo(str(down), err=True)
    else:
        if team is not None:
            click.echo(team.told(), err=True)
