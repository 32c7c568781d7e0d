"""A browser's session: its cookie, and what a request that carries one must show besides.

A browser sends cookies along with whatever a page asks of it, so a cookie alone proves nothing
about who asked. `SameSite=Strict` keeps foreign pages from sending it; pages of other ports of the
same host, and browsers with holes, are kept out by two more: whatever writes must have a header
that no form can send, and an `Origin` that is ours. A script on a foreign page could send neither
without our leave, which nobody is given.
"""

from __future__ import annotations

from collections.abc import Mapping

from regatta.server.openpai_errors import forbidden, invalid_token
from regatta.server.origins import Ours

REQUEST_HEADER = "x-regatta-request"
READS = frozenset({"GET", "HEAD", "OPTIONS"})
_NAME = "regatta-session"

NO_HEADER = (
    "A browser's session changes things only with the header `X-Regatta-Request: 1`; "
    "other programs should send a token as `Authorization: Bearer TOKEN`."
)
FOREIGN_ORIGIN = (
    "This request comes from {}, which is no page of this server; open the server's own pages, or "
    "tell whoever runs it to name this address as its own."
)


def cookie_name(*, secure: bool) -> str:
    """With the prefix, browsers take it from this very host alone, and over TLS alone."""
    return f"__Host-{_NAME}" if secure else _NAME


def session_cookie(token: str, seconds: int, *, secure: bool) -> str:
    """For `Set-Cookie`."""
    kept = f"{cookie_name(secure=secure)}={token}; Path=/; Max-Age={seconds}"
    return f"{kept}; HttpOnly; SameSite=Strict" + ("; Secure" if secure else "")


def ended_cookie(*, secure: bool) -> str:
    """Takes it away."""
    return session_cookie("", 0, secure=secure)


def session_shown(cookies: str, *, secure: bool) -> str | None:
    """Out of a `Cookie` header. Two of the name are one too many: where there is no prefix, another
    host of the domain can have set one of them."""
    name = cookie_name(secure=secure)
    parts = (part.strip().partition("=") for part in cookies.split(";"))
    found = [value.strip('"') for key, _, value in parts if key == name and value.strip('"')]
    if len(found) > 1:
        raise invalid_token()
    return found[0] if found else None


def check_browser(method: str, headers: Mapping[str, str], ours: Ours) -> None:
    """Raises OpenPaiError (403). For requests whose only proof is the cookie."""
    # What becomes a conversation can write later, and its page can set no header.
    talks = headers.get("upgrade", "").strip().lower() == "websocket"
    writes = method.upper() not in READS
    origin = headers.get("origin")
    if origin is None and (writes or talks):
        raise forbidden(FOREIGN_ORIGIN.format("an unknown page (it has no Origin)"))
    if origin is not None and not ours.origin(origin, headers.get("host", "")):
        raise forbidden(FOREIGN_ORIGIN.format(repr(origin[:200])))
    if writes and headers.get(REQUEST_HEADER, "").strip() != "1":
        raise forbidden(NO_HEADER)
