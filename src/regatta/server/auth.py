"""Who may speak to the server.

A loopback port is open to every program and every web page of this machine, so three things are
asked of a request: the token; no `Origin` (no browser page has business here); and a `Host` that
is this server's own, because a name that an attacker re-points to 127.0.0.1 would otherwise make
his page same-origin with us. Re-pointing needs a name: a server that listens on every address
takes any address for its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from regatta.api.errors import ForeignHost
from regatta.server.bounds.connections import ADMIT
from regatta.server.origins import LOOPBACK_NAMES, is_ours
from regatta.server.responses import refusal

#: Answers without a token, so that a client can tell a server from a stranger on its old port.
OPEN_PATHS = frozenset({"/healthz"})

FOREIGN_HOST = (
    "the Host header says {!r}, which is not a name of this server; speak to it as 127.0.0.1"
)
FOREIGN_ORIGIN = (
    "requests from web pages are refused (Origin: {}); use the command line, or a program that "
    "sends no Origin"
)
NO_TOKEN = (
    "this needs the server's token: send `Authorization: Bearer TOKEN`, where TOKEN is the content "
    "of server.token in the state folder"
)


class Doorkeeper:
    """ASGI middleware; the first thing that a request meets."""

    def __init__(
        self,
        app: ASGIApp,
        opens: Callable[[str], bool],
        hosts: Iterable[str] = (),
        *,
        any_address: bool = False,
    ) -> None:
        """`opens`: whether a token is the right one."""
        self._app = app
        self._any_address = any_address
        self._opens = opens
        self._hosts = LOOPBACK_NAMES | frozenset(hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            problem = self._problem(scope["path"], Headers(scope=scope))
            if problem is not None:
                await refusal(*problem)(scope, receive, send)
                return
            if scope["path"] not in OPEN_PATHS:
                scope["state"][ADMIT]()
        await self._app(scope, receive, send)

    def _problem(self, path: str, headers: Headers) -> tuple[int, str, str] | None:
        host = headers.get("host", "")
        if not is_ours(host, self._hosts, any_address=self._any_address):
            return ForeignHost.status, ForeignHost.code, FOREIGN_HOST.format(host)
        if "origin" in headers:
            return 403, "ForeignOrigin", FOREIGN_ORIGIN.format(headers["origin"])
        if path in OPEN_PATHS:
            return None
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not self._opens(token):
            return 401, "Unauthorized", NO_TOKEN
        return None
