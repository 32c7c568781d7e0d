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
    from regatta.daemon.server_files import ServerFiles
    from regatta.server.records.database_url import Address
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
        raise _elsewhere(settings.named_server, "leave --server out")
    require_team_parts()
    from regatta.api.errors import RecordsAway
    from regatta.server.records.away import for_a_command
    from regatta.server.records.database_url import read_url
    from regatta.server.records.team_database import Database, refuse_to_begin_anew

    named = url is not None
    url = _url(url, settings)
    address = read_url(url)
    missing = address.is_sqlite and not address.path.exists()
    if missing:
        refuse_to_begin_anew(address, noted_database(settings))
    if missing and not named:
        _require_here(settings, create)
    if missing and not create:
        if other := other_database_serves(settings, address):
            raise Stop(
                Exit.CONFLICT,
                f"the server that runs here keeps its accounts in {other}, and {address.path} "
                "does not exist",
                "Name the server's: --database URL, or REGATTA_DATABASE.",
            )
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
        if other := other_database_serves(settings, database.address):
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


def _require_here(settings: Settings, create: bool) -> None:
    """Of somebody whose commands go elsewhere the accounts are there, too: a database that is made
    here would be nobody's."""
    from regatta.client.credentials import signed_in_at

    if settings.server:
        raise _elsewhere(settings.server, "unset REGATTA_SERVER")
    # Signing in sends no command elsewhere, so an account can be made here all the same.
    if not create and (signed_in := list(signed_in_at())):
        raise _elsewhere(
            ", ".join(signed_in), "name it with --database URL", "you are signed in at"
        )


def _elsewhere(server: str, if_here: str, why: str = "the commands of this shell go to") -> Stop:
    return Stop(
        Exit.INVALID,
        "accounts and groups are looked after on the machine of the team's server, in its "
        f"database; {why} {server}",
        "For your own account there are `regatta whoami`, `regatta password` and `regatta tokens`; "
        f"the rest is its admins'. If the database is on this machine: {if_here}.",
    )


def other_database_serves(settings: Settings, address: Address) -> str:
    """Which one the server of this machine uses that runs now, where it is not this; else empty."""
    from regatta.daemon.server_files import is_held

    files = _server_files(settings)
    if files is None or not is_held(files.server_lock):
        return ""
    served = files.team_database
    return served if served != str(address) else ""


def noted_database(settings: Settings) -> str:
    """Which one a server here used last; empty: none did."""
    files = _server_files(settings)
    return "" if files is None else files.team_database


def _server_files(settings: Settings) -> ServerFiles | None:
    """None: the database was named, and nothing else of the server is known."""
    from regatta.api.errors import NoCluster
    from regatta.cli.team_places import team_folder
    from regatta.daemon.find import local_home
    from regatta.daemon.server_files import ServerFiles

    try:
        return ServerFiles(team_folder(settings.chosen, local_home()))
    except NoCluster:
        return None


def require_team_parts() -> None:
    from importlib.util import find_spec

    missing = [part for part in _PARTS if find_spec(part) is None]
    if missing:
        raise Stop(
            Exit.INVALID,
            f"this installation keeps no accounts: {', '.join(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} not installed",
            "`pip install '.[team]'`, in a checkout, installs what is missing.",
        )


def _url(given: str | None, settings: Settings) -> str:
    from regatta.cli.team_places import team_database, team_folder, team_settings
    from regatta.daemon.find import local_home

    if given:
        return given
    return team_database(None, team_folder(settings.chosen, local_home()), team_settings())
