"""`regatta users`: who may sign in at a team's server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from regatta.cli.outcomes import Exit
from regatta.cli.password_prompts import asked_password, password_file_option
from regatta.cli.settings import HELP_NAMES, AboutAccounts, Settings, pass_settings
from regatta.cli.show.output import dump, listing, output_option
from regatta.cli.show.table import table
from regatta.cli.team_accounts import (
    database_option,
    other_database_serves,
    require_team_parts,
    team_accounts,
)
from regatta.cli.team_uids import of_files_left, read_uid, require_usable

if TYPE_CHECKING:
    from regatta.server.accounts.users import User


@click.group("users", context_settings=HELP_NAMES, invoke_without_command=True)
@click.pass_context
def command(context: click.Context) -> None:
    """Look after the accounts of a team: who may sign in at `regatta serve --team`.

    These commands work on the team's database itself, on the machine that has it, whether or not
    the server runs. What they change holds from the next request on.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


@command.command("add", cls=AboutAccounts)
@click.argument("user")
@click.option("--admin", is_flag=True, help="May do everything.")
@click.option("--email", default="", metavar="ADDRESS", help="Of the user.")
@password_file_option
@database_option
@pass_settings
def add(
    settings: Settings,
    user: str,
    admin: bool,
    email: str,
    password_file: str | None,
    database: str | None,
) -> Exit:
    """Make an account. Asks for its password, twice."""
    with team_accounts(settings, database, create=True) as accounts:
        from regatta.server.accounts import administration
        from regatta.server.accounts.account_rules import check_user_name
        from regatta.server.accounts.passwords import Hashes
        from regatta.server.records.moments import now_millis

        check_user_name(user)  # before somebody is asked for a password
        password = asked_password(user, password_file, twice=True)
        made = accounts.run_here(
            administration.add_user,
            Hashes(),
            user,
            password,
            now_millis(),
            admin=admin,
            email=email,
        )
        other = other_database_serves(settings, accounts.address)
    role = ", as an admin" if admin else ""
    if other:  # which has been said
        print(f"{made.name} can sign in at a server that uses {accounts.address}{role}")
    else:
        print(f"{made.name} can sign in now{role}")
    return Exit.OK


@command.command("list", cls=AboutAccounts)
@output_option("json", "yaml")
@database_option
@pass_settings
def list_all(settings: Settings, output: str | None, database: str | None) -> Exit:
    """List the accounts, with their groups."""
    with team_accounts(settings, database) as accounts:
        from regatta.server.accounts.administration import list_users

        found = accounts.read_here(list_users)
    if output:
        print(dump(listing([_told(user) for user in found]), output))
        return Exit.OK
    if not found:
        click.echo("there are no accounts; `regatta users add --admin NAME` makes one", err=True)
        return Exit.OK
    rows = [
        (
            user.name,
            "admin" if user.admin else "-",
            "disabled" if user.disabled else "-",
            ",".join(user.groups),
            ",".join(user.virtual_clusters) or "-",
            str(user.unix_uid) if user.unix_uid is not None else "-",
            user.email or "-",
        )
        for user in found
    ]
    headers = ("NAME", "ADMIN", "DISABLED", "GROUPS", "CLUSTERS", "UID", "EMAIL")
    print(settings.page(table(headers, rows, settings.paint)))
    return Exit.OK


@command.command("remove", cls=AboutAccounts)
@click.argument("user")
@database_option
@pass_settings
def remove(settings: Settings, user: str, database: str | None) -> Exit:
    """Remove an account, its tokens and memberships. Its jobs and the audit stay.

    The name is given to nobody else while jobs of it are on record.
    """
    removed = _change(settings, database, "remove_user", user)
    print(f"{removed.name} is removed")
    return Exit.OK


@command.command("password", cls=AboutAccounts)
@click.argument("user")
@password_file_option
@database_option
@pass_settings
def password(
    settings: Settings, user: str, password_file: str | None, database: str | None
) -> Exit:
    """Give an account another password, and end its sign-ins. Tokens of applications stay."""
    with team_accounts(settings, database) as accounts:
        from regatta.server.accounts import administration
        from regatta.server.accounts.passwords import Hashes
        from regatta.server.accounts.users import get_user
        from regatta.server.records.moments import now_millis

        whose = accounts.read_here(get_user, user).name
        new = asked_password(whose, password_file, twice=True)
        accounts.run_here(administration.change_password, Hashes(), whose, new, now_millis())
    print(f"{whose} has another password; earlier sign-ins have ended")
    return Exit.OK


@command.command("disable", cls=AboutAccounts)
@click.argument("user")
@database_option
@pass_settings
def disable(settings: Settings, user: str, database: str | None) -> Exit:
    """Let nobody sign in with an account, and revoke all its tokens. Its jobs go on."""
    found = _change(settings, database, "disable_user", user)
    print(f"{found.name} is disabled, and all its tokens are revoked")
    return Exit.OK


@command.command("enable", cls=AboutAccounts)
@click.argument("user")
@database_option
@pass_settings
def enable(settings: Settings, user: str, database: str | None) -> Exit:
    """Let a disabled account sign in again."""
    print(f"{_change(settings, database, 'enable_user', user).name} can sign in again")
    return Exit.OK


@command.command("promote", cls=AboutAccounts)
@click.argument("user")
@database_option
@pass_settings
def promote(settings: Settings, user: str, database: str | None) -> Exit:
    """Make an account an admin's."""
    print(f"{_change(settings, database, 'set_admin', user, True).name} is an admin now")
    return Exit.OK


@command.command("demote", cls=AboutAccounts)
@click.argument("user")
@database_option
@pass_settings
def demote(settings: Settings, user: str, database: str | None) -> Exit:
    """Make an admin's account a member's."""
    print(f"{_change(settings, database, 'set_admin', user, False).name} is no admin any more")
    return Exit.OK


@command.command("clusters", cls=AboutAccounts)
@click.argument("user")
@click.argument("clusters", nargs=-1)
@database_option
@pass_settings
def clusters(
    settings: Settings, user: str, clusters: tuple[str, ...], database: str | None
) -> Exit:
    """Grant a user virtual clusters: these and no others, besides what the groups grant.

    Without any, the user has those of the groups alone.
    """
    require_team_parts()
    from regatta.cli.team_places import team_settings

    known = team_settings().virtual_clusters
    found = _change(settings, database, "set_clusters", user, clusters, known)
    print(f"{found.name} is granted {', '.join(found.virtual_clusters) or 'what groups grant'}")
    return Exit.OK


@command.command("uid", cls=AboutAccounts)
@click.argument("user")
@click.argument("uid")
@database_option
@pass_settings
def set_uid(settings: Settings, user: str, uid: str, database: str | None) -> Exit:
    """Say as which Unix account a user's jobs run, with `--isolation users`.

    UID is a number, or none: then the server takes one when it next needs it.
    """
    number = None if uid == "none" else read_uid(uid)
    with team_accounts(settings, database) as accounts:
        from regatta.server.accounts.administration import set_unix_uid
        from regatta.server.accounts.users import get_user
        from regatta.server.records.moments import now_millis

        before = accounts.read_here(get_user, user)
        if number is not None:
            require_usable(settings, before, number)
        found = accounts.run_here(set_unix_uid, user, number, now=now_millis())
    whom = "a uid that the server chooses" if number is None else number
    print(f"jobs of {found.name} run as {whom}")
    for line in of_files_left(before, number):
        print(f"  {line}")
    return Exit.OK


def _change(settings: Settings, database: str | None, what: str, user: str, *more: Any) -> User:
    with team_accounts(settings, database) as accounts:
        from regatta.server.accounts import administration
        from regatta.server.records.moments import now_millis

        changed: User = accounts.run_here(
            getattr(administration, what), user, *more, now=now_millis()
        )
        return changed


def _told(user: User) -> dict[str, Any]:
    from regatta.server.records.moments import said

    return {
        "name": user.name,
        "admin": user.admin,
        "disabled": user.disabled is not None,
        "groups": list(user.groups),
        "email": user.email,
        "virtualClusters": list(user.virtual_clusters),
        "unixUid": user.unix_uid,
        "created": said(user.created),
    }
