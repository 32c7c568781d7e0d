"""At which server somebody signs in, and what is told of it: for `login`, `logout`, `whoami` and
`tokens`."""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from regatta.api.errors import RegattaError, Unauthorized
from regatta.cli.outcomes import Exit, Stop

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from regatta.client.blocking_channel import BlockingChannel


def server_named(url: str | None) -> str:
    """As it was given, or this machine's own where that is a team's."""
    from regatta.client.whereabouts import place_of

    if url:
        place = place_of(url)
        return place.url + place.prefix
    from regatta.daemon.find import local_files

    files = local_files()
    address = files.read() if files.is_team else None
    if address is None:
        raise Stop(
            Exit.INVALID,
            "at which server? No team's server runs on this machine",
            "Name it: `regatta login https://HOST`, --server URL, or REGATTA_SERVER.",
        )
    return address.url


def require_private(url: str, *, insecure: bool) -> None:
    """Passwords and tokens do not cross a network in clear, unless somebody says so."""
    parts = urlsplit(url)
    if parts.scheme == "https" or insecure or _is_here(parts.hostname or ""):
        return
    raise Stop(
        Exit.INVALID,
        f"{url} is plain HTTP, and your password would cross the network in clear",
        "Use its https:// address, or a tunnel to it; --insecure signs in all the same.",
    )


def ask_server(work: Coroutine[Any, Any, Any], channel: BlockingChannel) -> Any:
    """What an account's server answers; a server without accounts is told as that."""
    from regatta.engines.blocking import Inline

    try:
        return Inline().run(work)
    except RegattaError as refused:
        if refused.code == "NoSuchPath" or (
            isinstance(refused, Unauthorized) and "server.token" in str(refused)
        ):
            raise Stop(
                Exit.INVALID,
                f"{channel.url or 'this server'} has no accounts: it serves one person",
                "`regatta serve --team` serves several; REGATTA_TOKEN is for the one's token.",
            ) from refused
        raise


def _is_here(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
