"""`regatta logout`: ends a sign-in, at the server and here."""

from __future__ import annotations

import click

from regatta.api.errors import RegattaError, Unauthorized
from regatta.cli.outcomes import Exit, Stop
from regatta.cli.settings import AboutSignIns, Settings, pass_settings, verb
from regatta.cli.sign_in_trouble import not_signed_in
from regatta.cli.signing_in import ask_server, server_named, server_of_sign_in


@verb("logout", cls=AboutSignIns)
@click.argument("url", required=False)
@pass_settings
def command(settings: Settings, url: str | None) -> Exit:
    """End your sign-in at a team's server, and forget its token here."""
    from regatta.client.account import sign_out
    from regatta.client.connect import channel_to
    from regatta.client.credentials import forget_credential, stored_credential

    server = server_named(url or server_of_sign_in(settings))
    settings.named_server = server  # for messages
    stored = stored_credential(server)
    if stored is None:
        raise Stop(Exit.CONFLICT, *not_signed_in(server))
    channel = channel_to(server, token=stored.token)
    try:
        ask_server(sign_out(channel), channel)
    except Unauthorized:  # it was over already
        pass
    except RegattaError as away:
        forget_credential(server)
        click.echo(f"warning: the token is forgotten here, and not revoked: {away}", err=True)
        return Exit.OK
    forget_credential(server)
    print(f"signed out at {server}")
    return Exit.OK
