"""`regatta login`: signs in at a team's server, and keeps the token."""

from __future__ import annotations

import sys
import time
from contextlib import suppress

import click

from regatta.api.errors import RegattaError
from regatta.cli.options import duration_with_unit
from regatta.cli.outcomes import Exit, Stop
from regatta.cli.password_prompts import asked_password, password_file_option
from regatta.cli.settings import AboutSignIns, Settings, pass_settings, verb
from regatta.cli.show.times import age
from regatta.cli.signing_in import ask_server, require_private, server_named

WEEK = 7 * 86_400


@verb("login", cls=AboutSignIns)
@click.argument("url", required=False)
@click.option("--username", metavar="NAME", help="Whose account; asked for unless given.")
@password_file_option
@click.option(
    "--for",
    "seconds",
    type=duration_with_unit,
    default="7d",
    metavar="TIME",
    show_default=True,
    help="How long it holds.",
)
@click.option("--insecure", is_flag=True, help="Also by plain HTTP to another machine.")
@pass_settings
def command(
    settings: Settings,
    url: str | None,
    username: str | None,
    password_file: str | None,
    seconds: float,
    insecure: bool,
) -> Exit:
    """Sign in at a team's server, and keep the token for later commands.

    It is kept in credentials.json of the folder $REGATTA_HOME (~/.regatta), for you alone, and goes
    to that server only. Commands go there with --server URL or REGATTA_SERVER.
    """
    from regatta.client.account import look_for_accounts, sign_in, sign_out
    from regatta.client.connect import channel_to
    from regatta.client.credentials import Credential, store_credential, stored_credential
    from regatta.engines.blocking import Inline

    server = server_named(url or settings.server)
    settings.named_server = server  # for messages
    require_private(server, insecure=insecure)
    if not 60 <= seconds <= WEEK:
        raise Stop(Exit.INVALID, f"--for is {age(seconds)}", "Write a time from 1m to 7d.")
    channel = channel_to(server, token="none")  # no other server's, nor one that is over
    if password_file is None:  # nobody types one in vain
        ask_server(look_for_accounts(channel), channel)
    name = username or _asked_name()
    password = asked_password(name, password_file)
    signed_in = ask_server(sign_in(channel, name, password, int(seconds)), channel)
    kept = Credential(
        signed_in.token, signed_in.user, url=server, expires=time.time() + int(seconds)
    )
    former = stored_credential(server)
    path = store_credential(server, kept)
    if former is not None:  # nobody has it any more
        with suppress(RegattaError):
            Inline().run(sign_out(channel_to(server, token=former.token)))
    admin = ", an admin" if signed_in.admin else ""
    print(f"signed in at {server} as {signed_in.user}{admin}, for {age(seconds)}")
    print(f"  kept in: {path}")
    print(f"  to use it: regatta --server {server} get, or export REGATTA_SERVER={server};")
    print("  commands without either stay with this machine")
    return Exit.OK


def _asked_name() -> str:
    if not sys.stdin.isatty():
        raise Stop(
            Exit.INVALID,
            "there is nobody to ask who signs in: standard input is no terminal",
            "Say it with --username NAME.",
        )
    return str(click.prompt("User", err=True))
