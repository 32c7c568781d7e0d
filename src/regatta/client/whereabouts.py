"""Where a server is and the word that opens it: named by a person, or this machine's own.

A named server stays where it is. This machine's own may die and come back elsewhere, and its port
may become somebody else's, who must not see the token: it is looked for again, by the rules of
`regatta.daemon`, whenever some time has passed or somebody found nobody there.
"""

from __future__ import annotations

import http.client
import os
import time
from typing import NamedTuple, Protocol
from urllib.parse import urlsplit

from regatta.api.errors import BadAddress, ServerStopped, ServerUnreachable
from regatta.client.credentials import stored_credential
from regatta.daemon.find import answering, local_files, team_is_down, token_for, usable
from regatta.daemon.server_files import Address, ServerFiles, is_held

#: How long this machine's server is taken to be where it was found.
FRESH_SECONDS = 5.0


class Place(NamedTuple):
    #: Scheme, host and port.
    url: str
    secure: bool
    netloc: str
    #: What the address carries besides, as of a server behind a gateway.
    prefix: str
    token: str


class Whereabouts(Protocol):
    @property
    def known(self) -> Place | None:
        """The place, where nothing has to be asked for it."""
        ...

    def find(self, *, again: bool = False) -> Place:
        """Blocks; may start a server. `again`: for a stream that had found it before, and starts
        none where a person has stopped it since (`ServerStopped`)."""
        ...

    def lost(self) -> bool:
        """Nobody answered there. True where looking again may find the server elsewhere."""
        ...


class Named:
    def __init__(self, url: str, token: str | None = None) -> None:
        unopened = place_of(url)
        given = token or given_token(url) or token_for(unopened.url)
        self.known = place_of(url, given)

    def find(self, *, again: bool = False) -> Place:
        return self.known

    def lost(self) -> bool:
        return False


class ThisMachine:
    def __init__(self, *, start: bool = True) -> None:
        self._start = start
        self._files: ServerFiles | None = None
        self._found: Place | None = None
        self._found_at = 0.0

    @property
    def known(self) -> Place | None:
        fresh = time.monotonic() - self._found_at < FRESH_SECONDS
        return self._found if fresh else None

    def find(self, *, again: bool = False) -> Place:
        if (known := self.known) is not None:
            return known
        # Whoever looks again must not make the folder anew that somebody has removed.
        files = self._files if again and self._files is not None else local_files()
        self._files = files
        # A team's does not make way for a newer one because of somebody's command.
        address = answering(files) if files.is_team else usable(files)
        if address is None and again and _was_stopped(files):
            starts = "whoever looks after it starts it again with `regatta serve --team`"
            if not files.is_team:
                starts = "`regatta server start` starts another"
            raise ServerStopped(
                f"the server was stopped; its jobs go on running. {starts[0].upper()}{starts[1:]}, "
                "and `regatta logs -f NAME` then follows a job again"
            )
        address = address or self._started(files)
        # A team's server has no token of its own: whoever asks has signed in, or not.
        token = given_token(address.url) if files.is_team else files.token()
        place = place_of(address.url, token)
        self._found, self._found_at = place, time.monotonic()
        return place

    def _started(self, files: ServerFiles) -> Address:
        if files.is_team:
            raise team_is_down(files)
        if not self._start:
            raise ServerUnreachable(
                "no server runs on this machine; `regatta server start` starts one, and so does "
                "any command that needs it"
            )
        from regatta.daemon.start import start_server

        return start_server(files)

    def lost(self) -> bool:
        self._found = None
        return True


def given_token(url: str) -> str:
    """REGATTA_TOKEN, or that of `regatta login`; empty: there is none."""
    if given := os.environ.get("REGATTA_TOKEN", "").strip():
        return given
    stored = stored_credential(url)
    return stored.token if stored else ""


def _was_stopped(files: ServerFiles) -> bool:
    """One that was asked to leave removes its address; one that died leaves it there. Somebody who
    starts another holds a lock meanwhile."""
    return files.read() is None and not is_held(files.starting_lock)


def place_of(url: str, token: str = "") -> Place:
    try:
        parts = urlsplit(url if "//" in url else f"http://{url}")
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        # It has an opinion of its own about what a host may look like.
        http.client.HTTPConnection(parts.netloc)
    except (ValueError, http.client.InvalidURL):
        usable = False
    if not usable:
        raise BadAddress(f"the server address {url!r} is not a URL; write it as http://HOST:PORT")
    if not (token.isascii() and token.isprintable()):
        raise BadAddress(
            "the token holds characters that no token has; set REGATTA_TOKEN to the content of "
            "the server's server.token"
        )
    return Place(
        f"{parts.scheme}://{parts.netloc}",
        parts.scheme == "https",
        parts.netloc,
        parts.path.rstrip("/"),
        token,
    )
