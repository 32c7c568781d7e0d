"""The gate of a team's server: the first thing that a request meets.

It says which path is meant (OpenPAI's clients send `/rest-server` before it and slashes behind it),
that its address does not ask too often, that the name in `Host` is ours, and who it comes from. All
but a few paths need somebody who is known. What changes something, and what is refused to somebody
who is not known, is written into the audit; what is refused for being too much of it is not.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Annotated, Any
from urllib.parse import parse_qs

from fastapi import Depends
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from regatta.api.errors import ForeignHost, RecordsAway, RegattaError
from regatta.server.accounts.audit import Entry, request_line, write_audit
from regatta.server.accounts.caller import Caller
from regatta.server.accounts.identity import identify, shown_by
from regatta.server.accounts.tokens import note_use
from regatta.server.bounds.connections import ADMIT
from regatta.server.openpai.openpai_refusals import (
    code_of_unexpected,
    for_strangers,
    refused,
    told_code,
)
from regatta.server.openpai_errors import TooManyRequests, invalid_parameters
from regatta.server.origins import Ours
from regatta.server.team.team import Team
from regatta.server.transport_rules import client_address

#: By method and path: what needs nobody.
OPEN = frozenset(
    {
        ("GET", "/healthz"),
        ("GET", "/api/v1"),
        ("GET", "/api/v1/authn/info"),
        ("POST", "/api/v1/token"),
        ("GET", "/api/v2/info"),
        ("GET", "/api/v2/authn/info"),
        ("POST", "/api/v2/authn/basic/login"),
        ("POST", "/regatta/v1/session"),
    }
)
#: What carries its own proof: short-lived links to logs, signed by us.
SIGNED_PREFIX = "/api/v2/logs/"

_GATEWAY = "/rest-server"
_READS = frozenset({"GET", "HEAD", "OPTIONS"})
#: Headers that say who asks and what for.
_ONCE = ("authorization", "cookie", "origin", "host", "content-length", "transfer-encoding")
FOREIGN_HOST = (
    "The Host header says {!r}, which is no name of this server; whoever runs it can name it under "
    "team.publicUrls."
)

log = logging.getLogger(__name__)


def caller_of(request: Request) -> Caller:
    """For `Depends`: who asks."""
    caller: Caller = request.state.caller
    return caller


#: As a parameter of a route: who asks.
Asking = Annotated[Caller, Depends(caller_of)]


def known_as(request: Request) -> Callable[[str], None]:
    """For the audit of an open path: to be told whose account is asked for."""

    def note(name: str) -> None:
        request.state.who = name

    return note


def address_of(request: Request) -> str:
    """For `Depends`: from where."""
    address: str = request.state.address
    return address


def admit(request: Request) -> None:
    """For a path that carries its own proof, once that was looked at: its connection is no
    stranger's any more, and may take its time."""
    _admit(request.scope["state"])


def _admit(state: dict[str, Any]) -> None:
    known: Callable[[], None] = state.get(ADMIT, lambda: None)
    known()


def gateway_of(request: Request) -> str:
    """What the client's paths begin with before `/api`: a proxy in front may let only that in."""
    gateway: str = request.state.gateway
    return gateway


def plain_path(path: str) -> str:
    return path[len(_gateway(path)) :].rstrip("/") or "/"


def _gateway(path: str) -> str:
    return _GATEWAY if path == _GATEWAY or path.startswith(_GATEWAY + "/") else ""


def needs_nobody(method: str, path: str) -> bool:
    return ("GET" if method == "HEAD" else method, path) in OPEN or path.startswith(SIGNED_PREFIX)


def check_framing(headers: Headers) -> None:
    """What a proxy in front and we could understand differently. Raises OpenPaiError (400)."""
    for name in _ONCE:
        if len(headers.getlist(name)) > 1:
            raise invalid_parameters(f"the header {name} was sent twice; send it once")
    if "content-length" in headers and "transfer-encoding" in headers:
        raise invalid_parameters(
            "Content-Length and Transfer-Encoding were both sent; send one of them"
        )


class Gate:
    """ASGI middleware."""

    def __init__(self, app: ASGIApp, team: Team, ours: Ours, *, behind_proxy: bool = False) -> None:
        self._app, self._team, self._ours = app, team, ours
        self._behind_proxy = behind_proxy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        state: dict[str, Any] = scope["state"]
        state["gateway"] = _gateway(scope["path"])
        scope["path"] = plain_path(scope["path"])
        scope["raw_path"] = plain_path(scope["raw_path"].decode("latin-1")).encode("latin-1")
        headers = Headers(scope=scope)
        state["address"] = self._address(scope, headers)
        status = 500

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            try:
                await self._let_in(scope, headers, state)
            except RegattaError as why:
                answer = refused(scope["path"], for_strangers(why))
                state["refused"] = told_code(answer)
                if "transfer-encoding" in headers:  # where its body ends is not agreed on
                    answer.headers["Connection"] = "close"
                await answer(scope, receive, watched)
            else:
                await self._app(scope, receive, watched)
        except Exception:  # it is answered further out
            state["refused"] = code_of_unexpected(scope["path"])
            raise
        finally:
            await self._note(scope, state, status)

    async def _let_in(self, scope: Scope, headers: Headers, state: dict[str, Any]) -> None:
        # Before anything that is noted: each note is a write, and nobody can have more of them
        # than of requests.
        try:
            self._team.limits.request(state["address"])
        except TooManyRequests:
            state["too_often"] = True
            raise
        check_framing(headers)
        host = headers.get("host", "")
        if not self._ours.host(host):
            raise ForeignHost(FOREIGN_HOST.format(host[:200]))
        if needs_nobody(scope["method"], scope["path"]):
            return
        shown = shown_by(scope["method"], headers, self._ours)
        database, now = self._team.database, self._team.now()
        known = await database.read(identify, shown, now)
        if known.note_use:
            with suppress(RecordsAway):  # who only reads need not be refused for it
                await database.run(note_use, known.caller.handle, now)
        state["caller"] = known.caller
        _admit(state)

    def _address(self, scope: Scope, headers: Headers) -> str:
        peer = scope["client"][0] if scope.get("client") else ""
        told = headers.getlist("x-forwarded-for")
        return client_address(peer, told, behind_proxy=self._behind_proxy)

    async def _note(self, scope: Scope, state: dict[str, Any], status: int) -> None:
        """What changed something or tried to. Reads are many, and tell nothing that was not seen
        by somebody who may see it; of an address that asks too often, what it asked until then
        is."""
        if state.get("too_often") or (scope["method"] in _READS and status != 403):
            return
        caller: Caller | None = state.get("caller")
        entry = Entry(
            at=self._team.now(),
            who=caller.name if caller else state.get("who", ""),
            what=request_line(scope["method"], scope["path"]) + _dry_run(scope),
            job=state.get("job", ""),
            address=state["address"],
            result=state.get("refused", ""),
            status=status,
        )
        try:
            await self._team.database.run(write_audit, entry)
        except RecordsAway:
            log.warning("not in the audit, whose database is away: %s", entry)


def _dry_run(scope: Scope) -> str:
    """Of a query all that the audit tells: a job that was only looked at is none."""
    said = parse_qs(scope["query_string"].decode("latin-1")).get("dryRun", [""])[-1]
    return f"?dryRun={said}" if said in ("true", "stored") else ""
