"""`regatta tokens`: one's own tokens at a team's server."""

from __future__ import annotations

from datetime import datetime

import click

from regatta.cli.outcomes import Exit, Stop
from regatta.cli.settings import HELP_NAMES, AboutSignIns, Settings, pass_settings
from regatta.cli.show.output import dump, listing, output_option
from regatta.cli.show.table import table
from regatta.cli.show.times import age, since
from regatta.cli.signing_in import ask_server, server_of_sign_in


@click.group("tokens", context_settings=HELP_NAMES, invoke_without_command=True)
@click.pass_context
def command(context: click.Context) -> None:
    """List, make and revoke your tokens at a team's server.

    A token is known by its handle: the value is shown once, when it is made.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


@command.command("list", cls=AboutSignIns)
@output_option("json", "yaml")
@pass_settings
def list_all(settings: Settings, output: str | None) -> Exit:
    """List those of your tokens that live."""
    from regatta.client.account import own_tokens
    from regatta.client.connect import channel_to

    channel = channel_to(server_of_sign_in(settings))
    found = ask_server(own_tokens(channel), channel)
    if output:
        print(dump(listing(found), output))
        return Exit.OK
    rows = [
        (
            token.handle,
            token.kind + (" (this one)" if token.current else ""),
            age(since(_moment(token.created))),
            token.expires or "never",
            f"{age(since(_moment(token.last_used)))} ago" if token.last_used else "-",
        )
        for token in found
    ]
    headers = ("HANDLE", "KIND", "AGE", "EXPIRES", "LAST USED")
    print(settings.page(table(headers, rows, settings.paint)))
    return Exit.OK


@command.command("create", cls=AboutSignIns)
@output_option("json", "yaml")
@pass_settings
def create(settings: Settings, output: str | None) -> Exit:
    """Make a token for a program: it has no end, and is good for jobs alone.

    The value goes to standard output, this once.
    """
    from regatta.cli.show.output import plain
    from regatta.client.account import new_token
    from regatta.client.connect import channel_to

    channel = channel_to(server_of_sign_in(settings))
    made = ask_server(new_token(channel), channel)
    print(dump(plain(made), output) if output else made.token)
    click.echo(
        f"keep it: it is not shown again; `regatta tokens revoke {made.handle}` ends it", err=True
    )
    return Exit.OK


@command.command("revoke", cls=AboutSignIns)
@click.argument("handles", nargs=-1, required=True, metavar="HANDLE...")
@pass_settings
def revoke(settings: Settings, handles: tuple[str, ...]) -> Exit:
    """End tokens of yours, by their handles."""
    from urllib.parse import quote

    from regatta.api.errors import NotAllowed
    from regatta.client.account import own_tokens, revoke_token
    from regatta.client.connect import channel_to

    channel = channel_to(server_of_sign_in(settings))
    for handle in handles:
        try:
            ask_server(revoke_token(channel, quote(handle, safe="")), channel)
        except NotAllowed as refused:
            # A server says no more; who may not revoke any is refused the list as well.
            if handle in {own.handle for own in ask_server(own_tokens(channel), channel)}:
                raise
            raise Stop(
                Exit.CONFLICT,
                f"you have no token {handle}",
                "`regatta tokens list` lists those you have.",
            ) from refused
        print(f"{handle} is revoked")
    return Exit.OK


def _moment(written: str | None) -> datetime | None:
    return datetime.fromisoformat(written) if written else None
