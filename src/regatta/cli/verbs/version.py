"""`regatta version`: of the client, and of the server if one runs."""

from __future__ import annotations

from regatta import __version__
from regatta.api.errors import RegattaError, ServerHangs
from regatta.cli.outcomes import Exit
from regatta.cli.settings import Settings, pass_settings, verb
from regatta.cli.show.output import dump, output_option


@verb("version")
@output_option("json", "yaml")
@pass_settings
def command(settings: Settings, output: str | None) -> Exit:
    """Print the versions of client and server, or of the cluster. Starts no server."""
    if settings.on_cluster:
        cluster = settings.cluster().version()
        versions = {"client": __version__, "cluster": cluster}
        print(dump(versions, output) if output else f"client {__version__}\ncluster {cluster}")
        return Exit.OK
    try:
        server = settings.connect_server(start=False).server().version
    except ServerHangs:
        raise
    except RegattaError:
        server = None
    if output:
        print(dump({"client": __version__, "server": server}, output))
    else:
        print(f"client {__version__}\nserver {server or 'not running'}")
    return Exit.OK
