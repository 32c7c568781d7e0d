"""`regatta password`: another password for one's own account at a team's server."""

from __future__ import annotations

import click

from regatta.cli.outcomes import Exit, Stop
from regatta.cli.password_prompts import STDIN, asked_password
from regatta.cli.settings import AboutSignIns, Settings, pass_settings, verb
from regatta.cli.signing_in import ask_server, require_private, server_named, server_of_sign_in

OLD, NEW = "--old-password-file", "--password-file"


@verb("password", cls=AboutSignIns)
@click.argument("url", required=False)
@click.option(
    OLD, "old_file", metavar="FILE", help="Has the present password; - for standard input."
)
@click.option(NEW, "new_file", metavar="FILE", help="Has the new password; - for standard input.")
@click.option("--insecure", is_flag=True, help="Also by plain HTTP to another machine.")
@pass_settings
def command(
    settings: Settings,
    url: str | None,
    old_file: str | None,
    new_file: str | None,
    insecure: bool,
) -> Exit:
    """Change your password at a team's server. Asks for the present one, and twice for the new one.

    Your other sign-ins end. The one that asks stays, and so do tokens of applications.
    """
    from regatta.api.errors import NotAllowed
    from regatta.client.account import change_password, whoami
    from regatta.client.connect import channel_to

    if old_file == new_file == STDIN:
        raise Stop(
            Exit.INVALID,
            f"{OLD} and {NEW} are both -, and standard input has one password",
            "Put one of them into a file that you alone can read.",
        )
    server = server_named(url or server_of_sign_in(settings))
    settings.named_server = server  # for messages
    require_private(server, insecure=insecure)
    channel = channel_to(server)
    me = ask_server(whoami(channel), channel)
    if me.kind == "application":
        raise Stop(
            Exit.UNREACHABLE,
            "a token of an application is good for jobs alone, and changes no password",
            f"Unset REGATTA_TOKEN, and sign in: `regatta login {server}`.",
        )
    old = asked_password(me.name, old_file, called="Present password", option=OLD)
    new = asked_password(me.name, new_file, twice=True, called="New password", option=NEW)
    try:
        ask_server(change_password(channel, me.name, old, new), channel)
    except NotAllowed as refused:
        raise Stop(
            Exit.UNREACHABLE,
            f"that is not the present password of {me.name}, which stays as it is",
            "Who has forgotten it asks an admin, who gives another: "
            f"`regatta users password {me.name}` on the server's machine.",
        ) from refused
    print(f"{me.name} has another password at {server}")
    print("  your other sign-ins there have ended; this one stays, as do tokens of applications")
    print("  `regatta tokens list` lists what is left, and `regatta tokens revoke HANDLE` ends one")
    return Exit.OK
