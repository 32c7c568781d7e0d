"""`regatta serve`: the server in the foreground, for one person or for a team."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from regatta.cli.outcomes import Exit, Stop
from regatta.cli.settings import Settings, pass_settings, verb
from regatta.daemon.server_files import Address

if TYPE_CHECKING:
    from collections.abc import Callable

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
#: By parameter: the option.
_OF_TEAMS = {
    "database": "--database",
    "isolation": "--isolation",
    "visibility": "--visibility",
    "tls_cert": "--tls-cert",
    "tls_key": "--tls-key",
    "behind_proxy": "--behind-proxy",
    "public_urls": "--public-url",
}


@verb("serve")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="Port; a free one unless given."
)
@click.option("--team", is_flag=True, help="For several people, who each sign in.")
@click.option(
    "--database", metavar="URL", help="Of the team's records; SQLite in the state folder if unset."
)
@click.option(
    "--isolation",
    type=click.Choice(["users", "container", "none"]),
    help="Whose processes members' jobs are, on this machine.",
)
@click.option(
    "--visibility",
    type=click.Choice(["own", "group", "all"]),
    help="Whose jobs members see; their own unless set.",
)
@click.option("--tls-cert", type=_FILE, metavar="FILE", help="Certificate, to be reached by HTTPS.")
@click.option("--tls-key", type=_FILE, metavar="FILE", help="Its key.")
@click.option("--behind-proxy", is_flag=True, help="A proxy in front speaks HTTPS.")
@click.option(
    "--public-url",
    "public_urls",
    metavar="URL",
    multiple=True,
    help="Under which clients know it, where that is not this machine's name; repeatable.",
)
@pass_settings
def command(settings: Settings, /, host: str, port: int, team: bool, **of_teams: Any) -> Exit:
    """Run the server in the foreground, until Ctrl-C. Jobs go on running when it ends.

    With --engine kubernetes it stands in front of a cluster, and whoever has its token acts there
    with the rights of your kubeconfig. Only this machine can reach it unless --host says otherwise.
    Every request needs the token in the server.token file of the folder that it names.

    With --team everybody has an account instead (`regatta users add`), and OpenPAI's clients and
    job files are served, too.
    """
    from regatta.daemon.find import local_home
    from regatta.daemon.start import require_parts

    require_parts()
    from regatta.server.run import ALREADY_SERVED

    given = [name for name in _OF_TEAMS if of_teams[name]]
    if given and not team:
        raise Stop(
            Exit.INVALID, f"{_OF_TEAMS[given[0]]} is about a team's server", "Add --team to it."
        )
    home = local_home()
    if team:
        from regatta.cli.team_opening import team_server

        folder, serve = team_server(settings.chosen, home, host, **of_teams)
    else:
        folder, serve = _for_one(settings, home)
    try:
        code = serve(host, port)
    except OSError as error:
        raise Stop(
            Exit.INVALID,
            f"cannot listen on {host} port {port}: {error.strerror}",
            "Choose another --host or --port; without --port a free one is taken.",
        ) from error
    if code == ALREADY_SERVED:
        raise Stop(
            Exit.CONFLICT,
            f"a server already runs on {folder}",
            "Use it, or end it first: Ctrl-C where it runs, or `regatta server stop`"
            + (", signed in as an admin." if _is_team(folder) else "."),
        )
    return Exit.OK if code == 0 else Exit.FAILED


def _for_one(settings: Settings, home: Any) -> tuple[Path, Callable[[str, int], int]]:
    from regatta.server.run import serve

    folder, open_engine = settings.chosen.hosted(home)
    if _is_team(folder):
        raise Stop(
            Exit.CONFLICT,
            f"the jobs in {folder} are a team's",
            "Start its server with --team, or set REGATTA_HOME to another folder.",
        )

    def ready(address: Address) -> None:
        print(f"serving {address.url}\n  state and token: {folder}", flush=True)

    return folder, lambda host, port: serve(folder, open_engine, host=host, port=port, ready=ready)


def _is_team(folder: Path) -> bool:
    from regatta.daemon.server_files import ServerFiles

    return ServerFiles(folder).is_team
