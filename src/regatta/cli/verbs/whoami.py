"""`regatta whoami`: as whom a team's server knows you."""

from __future__ import annotations

from regatta.cli.outcomes import Exit
from regatta.cli.settings import AboutSignIns, Settings, pass_settings, verb
from regatta.cli.show.output import dump, output_option, plain
from regatta.cli.signing_in import ask_server, server_of_sign_in


@verb("whoami", cls=AboutSignIns)
@output_option("json", "yaml")
@pass_settings
def command(settings: Settings, output: str | None) -> Exit:
    """Show as whom a team's server knows you, and until when."""
    from regatta.client.account import whoami
    from regatta.client.connect import channel_to

    channel = channel_to(server_of_sign_in(settings))
    found = ask_server(whoami(channel), channel)
    if output:
        print(dump({"server": channel.url, **plain(found)}, output))
        return Exit.OK
    print(f"{found.name} at {channel.url}{', an admin' if found.admin else ''}")
    print(f"  groups:           {', '.join(found.groups)}")
    print(f"  virtual clusters: {', '.join(found.virtual_clusters) or 'none'}")
    print(f"  namespace:        {found.namespace}")
    print(f"  token:            {found.kind}, {_until(found.expires)}")
    return Exit.OK


def _until(expires: str | None) -> str:
    return f"until {expires}" if expires else "until it is revoked"
