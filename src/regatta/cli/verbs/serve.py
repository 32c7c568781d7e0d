"""`regatta serve`: the server in the foreground."""

from __future__ import annotations

import click

from regatta.cli.outcomes import Exit, Stop
from regatta.cli.settings import Settings, pass_settings, verb
from regatta.daemon.server_files import Address


@verb("serve")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="Port; a free one unless given."
)
@pass_settings
def command(settings: Settings, host: str, port: int) -> Exit:
    """Run the server in the foreground, until Ctrl-C. Jobs go on running when it ends.

    With --engine kubernetes it stands in front of a cluster, and whoever has its token acts there
    with the rights of your kubeconfig. Only this machine can reach it unless --host says otherwise.
    Every request needs the token in the server.token file of the folder that it names.
    """
    from regatta.daemon.find import local_home
    from regatta.daemon.start import require_parts

    require_parts()
    from regatta.server.run import ALREADY_SERVED, serve

    folder, open_engine = settings.chosen.hosted(local_home())

    def ready(address: Address) -> None:
        print(f"serving {address.url}\n  state and token: {folder}", flush=True)

    try:
        code = serve(folder, open_engine, host=host, port=port, ready=ready)
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
            "Use it, or end it first: Ctrl-C where it runs, or `regatta server stop`.",
        )
    return Exit.OK
