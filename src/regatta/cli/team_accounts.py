"""The accounts of a team, by the database of this machine: no server is asked, and none needs to
run. Whoever may write the database may do this."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from regatta.cli.outcomes import Exit, Stop

if TYPE_CHECKING:
    from regatta.cli.settings import Settings
    from regatta.server.records.team_database import Database

_PARTS = ("sqlalchemy", "alembic", "argon2")


def database_option(function: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--database",
        metavar="URL",
        help="Of the team's records; the one of `regatta serve --team` here unless given.",
    )(function)


@contextmanager
def team_accounts(
    settings: Settings, url: str | None, *, create: bool = False
) -> Iterator[Database]:
    """`create`: the database is made where there is none."""
    if settings.named_server:
        raise Stop(
            Exit.INVALID,
            "accounts are kept in the team's database, and no server is asked for them",
            "Leave --server out, and run this where the database is, or name it with --database.",
        )
    require_team_parts()
    from regatta.api.errors import RecordsAway
    from regatta.server.records.away import for_a_command
    from regatta.server.records.database_url import read_url
    from regatta.server.records.team_database import Database

    url = _url(url, settings)
    address = read_url(url)
    if not create and address.is_sqlite and not address.path.exists():
        raise Stop(
            Exit.CONFLICT,
            f"there are no accounts yet: {address.path} does not exist",
            "`regatta users add --admin NAME` makes the first one; --database names another place.",
        )
    try:
        database = Database(url)
    except RecordsAway as away:
        raise for_a_command(away) from None
    try:
        if other := other_database_serves(settings, database):
            click.echo(
                f"warning: the server that runs here keeps its accounts in {other}, and this is "
                f"{database.address}; --database URL names the other",
                err=True,
            )
        yield database
    except RecordsAway as away:
        raise for_a_command(away) from None
    finally:
        database.close()


def other_database_serves(settings: Settings, database: Database) -> str:
    """Which one the server of this machine uses that runs now, where it is not this; else empty."""
    from regatta.api.errors import NoCluster
    from regatta.cli.team_places import team_folder
    from regatta.daemon.find import local_home
    from regatta.daemon.server_files import ServerFiles, is_held

    try:
        files = ServerFiles(team_folder(settings.chosen, local_home()))
    except NoCluster:  # the database was named, and nothing else of the server is known
        return ""
    if not is_held(files.server_lock):
        return ""
    served = files.team_database
    return served if served != str(database.address) else ""


def require_team_parts() -> None:
    from importlib.util import find_spec

    missing = [part for part in _PARTS if find_spec(part) is None]
    if missing:
        raise Stop(
            Exit.INVALID,
            f"this installation keeps no accounts: {', '.join(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} not installed",
            "`pip install 'regatta-train[team]'` installs what is missing.",
        )


def _url(given: str | None, settings: Settings) -> str:
    from regatta.cli.team_places import team_database, team_folder, team_settings
    from regatta.daemon.find import local_home

    if given:
        return given
    return team_database(None, team_folder(settings.chosen, local_home()), team_settings())
