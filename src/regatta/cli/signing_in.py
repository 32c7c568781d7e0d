"""At which server somebody signs in, and what is told of it: for `login`, `logout`, `whoami`,
`password` and `tokens`."""

from __future__ import annotations

import time
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from regatta.api.errors import NotAllowed, RegattaError, Unauthorized
from regatta.cli.engine_choice import LOCAL
from regatta.cli.outcomes import Exit, Stop

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from regatta.cli.settings import Settings
    from regatta.client.blocking_channel import BlockingChannel

#: How servers refuse what they do not have: nobody is known there, no such path or method.
_OF_WRONG_PATHS = (401, 404, 405, 501)


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


def server_of_sign_in(settings: Settings) -> str | None:
    """Where a verb about sign-ins alone goes: as named, or where there is the one sign-in. None: to
    this machine's own server. It is the named one from then on, for messages as well."""
    if settings.server:
        return settings.server
    from regatta.client.credentials import server_key, signed_in_at
    from regatta.daemon.find import local_files

    known = list(signed_in_at())
    address = local_files().read()
    here = server_key(address.url) if address else ""
    if not known and address is None:
        raise Stop(
            Exit.UNREACHABLE, "you are not signed in anywhere", "`regatta login URL` signs in."
        )
    if not known or here in map(server_key, known):
        return None
    if len(known) > 1:
        raise Stop(
            Exit.INVALID,
            f"you are signed in at {len(known)} servers: {', '.join(known)}",
            "Say which is meant: add --server URL.",
        )
    settings.named_server = known[0]
    return known[0]


def elsewhere(settings: Settings) -> list[str]:
    """To whoever looked at this machine, and has signed in somewhere else. Who asks for nothing in
    particular may have meant that."""
    if settings.server or settings.chosen.engine != LOCAL:
        return []
    from regatta.api.errors import UnusableFile
    from regatta.client.credentials import signed_in_at

    try:
        known = signed_in_at()
    except UnusableFile:  # whoever signs in is told
        return []
    return [
        f"This is this machine; you are signed in at {url}: `regatta --server {url} get`, or set "
        "REGATTA_SERVER."
        for url, kept in known.items()
        if not kept.expires or kept.expires > time.time()
    ]


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
        _require_right_path(refused, channel)
        if refused.code == "NoSuchPath" or (
            isinstance(refused, Unauthorized) and "server.token" in str(refused)
        ):
            raise Stop(
                Exit.INVALID,
                f"{channel.url or 'this server'} has no accounts: it serves one person",
                "`regatta serve --team` serves several; REGATTA_TOKEN is for the one's token.",
            ) from refused
        if (ours := _in_our_words(refused)) is not None:
            raise ours from refused
        raise


def _in_our_words(refused: RegattaError) -> Stop | NotAllowed | None:
    """Of OpenPAI's routes, whose codes say less of who is to do what."""
    match refused.code:
        case "NoUserError":
            hint = "Check how the name is written; an admin of that server makes accounts."
            return Stop(Exit.UNREACHABLE, str(refused), hint)
        case "ForbiddenUserError":
            return NotAllowed(str(refused))
        case "UnknownError" if refused.status == 503:  # what it needs is away, or it is leaving
            return Stop(Exit.UNREACHABLE, str(refused))
    return None


def _require_right_path(refused: RegattaError, channel: BlockingChannel) -> None:
    """Under a path that it does not have a server refuses whoever asks: that says nothing of
    anybody's sign-in."""
    if not channel.prefix or refused.status not in _OF_WRONG_PATHS:
        return
    from regatta.client.account import has_accounts
    from regatta.client.connect import channel_to
    from regatta.engines.blocking import Inline

    def is_there(url: str) -> bool:
        return bool(Inline().run(has_accounts(channel_to(url, token="none"))))

    wrong = channel.url + channel.prefix
    if is_there(wrong) or not is_there(channel.url):
        return
    raise Stop(
        Exit.UNREACHABLE,
        f"there is no Regatta server at {wrong}: it is at {channel.url}",
        f"Leave {channel.prefix} out: `regatta login {channel.url}`, or --server {channel.url}.",
    ) from refused


def _is_here(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
