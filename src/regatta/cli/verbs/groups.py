"""`regatta groups`: the groups of a team, and who is in them."""

from __future__ import annotations

from typing import Any

import click

from regatta.cli.outcomes import Exit
from regatta.cli.settings import HELP_NAMES, AboutAccounts, Settings, pass_settings
from regatta.cli.show.output import dump, listing, output_option
from regatta.cli.show.table import table
from regatta.cli.team_accounts import database_option, require_team_parts, team_accounts


@click.group("groups", context_settings=HELP_NAMES, invoke_without_command=True)
@click.pass_context
def command(context: click.Context) -> None:
    """Look after the groups of a team. Everybody is in `default`, every admin in `admingroup`.

    With `--visibility group` people see the jobs of those who share another group with them. These
    commands work on the team's database itself, on the machine that has it.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


@command.command("add", cls=AboutAccounts)
@click.argument("group")
@click.option("--description", default="", metavar="TEXT", help="What it is for.")
@database_option
@pass_settings
def add(settings: Settings, group: str, description: str, database: str | None) -> Exit:
    """Make a group."""
    made = _change(settings, database, "add_group", group, description=description)
    print(f"there is a group {made.name} now; `regatta groups join {made.name} USER` fills it")
    return Exit.OK


@command.command("list", cls=AboutAccounts)
@output_option("json", "yaml")
@database_option
@pass_settings
def list_all(settings: Settings, output: str | None, database: str | None) -> Exit:
    """List the groups, with who is in them."""
    groups = _change(settings, database, "list_groups")
    with team_accounts(settings, database) as accounts:
        from regatta.server.accounts.administration import list_users

        users = accounts.read_here(list_users)
    members = {
        group.name: [user.name for user in users if group.name in user.groups] for group in groups
    }
    if output:
        told = [
            {
                "name": group.name,
                "description": group.description,
                "members": members[group.name],
                "virtualClusters": group.granted("virtualClusters"),
            }
            for group in groups
        ]
        print(dump(listing(told), output))
        return Exit.OK
    rows = [
        (
            group.name,
            ",".join(members[group.name]) or "-",
            ",".join(group.granted("virtualClusters")) or "-",
            group.description or "-",
        )
        for group in groups
    ]
    head = ("NAME", "MEMBERS", "CLUSTERS", "DESCRIPTION")
    print(settings.page(table(head, rows, settings.paint)))
    return Exit.OK


@command.command("remove", cls=AboutAccounts)
@click.argument("group")
@database_option
@pass_settings
def remove(settings: Settings, group: str, database: str | None) -> Exit:
    """Remove a group. Its members stay."""
    print(f"group {_change(settings, database, 'remove_group', group).name} is removed")
    return Exit.OK


@command.command("join", cls=AboutAccounts)
@click.argument("group")
@click.argument("user")
@database_option
@pass_settings
def join(settings: Settings, group: str, user: str, database: str | None) -> Exit:
    """Put a user into a group; into `admingroup` makes an admin."""
    joined = _change(settings, database, "join_group", user, group)
    print(f"{joined.name} is in {', '.join(joined.groups)}")
    return Exit.OK


@command.command("leave", cls=AboutAccounts)
@click.argument("group")
@click.argument("user")
@database_option
@pass_settings
def leave(settings: Settings, group: str, user: str, database: str | None) -> Exit:
    """Take a user out of a group."""
    left = _change(settings, database, "leave_group", user, group)
    print(f"{left.name} is in {', '.join(left.groups)}")
    return Exit.OK


@command.command("clusters", cls=AboutAccounts)
@click.argument("group")
@click.argument("clusters", nargs=-1)
@database_option
@pass_settings
def clusters(
    settings: Settings, group: str, clusters: tuple[str, ...], database: str | None
) -> Exit:
    """Grant all of a group virtual clusters: these and no others."""
    require_team_parts()
    from regatta.cli.team_places import team_settings

    known = team_settings().virtual_clusters
    found = _change(settings, database, "set_group_clusters", group, clusters, known)
    granted = found.granted("virtualClusters")
    print(f"{found.name} is granted {', '.join(granted) or 'no virtual cluster'}")
    return Exit.OK


def _change(settings: Settings, database: str | None, what: str, *names: Any, **more: Any) -> Any:
    with team_accounts(settings, database) as accounts:
        from regatta.server.accounts import administration
        from regatta.server.records.moments import now_millis

        work = getattr(administration, what)
        return accounts.run_here(work, *names, now=now_millis(), **more)
