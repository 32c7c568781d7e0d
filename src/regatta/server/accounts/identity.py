"""From what a request shows to who it comes from.

Three doors, and each takes its own kind of token: `Bearer` those of sign-ins and of applications;
`Basic`, as `user:token`, those of applications alone; the cookie those of browsers alone. So what
leaks through one door opens no other: a cookie's token is good for nothing without the rules for
browsers. A request that shows something wrong is refused, whatever else it shows.

Reading the request is pure (`shown_by`); `identify` looks in the database, and only reads there.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from sqlalchemy import Connection

from regatta.server.accounts.account_rules import key_of
from regatta.server.accounts.browser_sessions import check_browser, session_shown
from regatta.server.accounts.caller import Caller
from regatta.server.accounts.tokens import Kind, find_token, living_token
from regatta.server.accounts.users import user_by_id
from regatta.server.openpai_errors import guest, invalid_token
from regatta.server.origins import Ours

#: No token is nearly as long.
LONGEST_CREDENTIAL = 4096


class Door(Enum):
    """With the kinds of token that it takes."""

    BEARER = (Kind.SIGN_IN, Kind.APPLICATION)
    BASIC = (Kind.APPLICATION,)
    COOKIE = (Kind.BROWSER,)


@dataclass(frozen=True, slots=True)
class Shown:
    door: Door
    token: str
    #: Whose it is said to be, where that is said.
    name: str | None = None

    def __repr__(self) -> str:  # it may end up in a log
        return f"Shown({self.door.name})"


@dataclass(frozen=True, slots=True)
class Identified:
    caller: Caller
    #: Whether `tokens.note_use` is due: once in a while, so that requests only read.
    note_use: bool


def shown_by(method: str, headers: Mapping[str, str], ours: Ours) -> Shown:
    """Raises OpenPaiError: 401 where nothing is shown or it can be no token, 403 where a cookie
    came by a way that a foreign page could have sent it. `headers` has names in lower case, or does
    not tell cases apart."""
    authorization = headers.get("authorization", "").strip()
    if authorization:
        return _authorization(authorization)
    session = session_shown(headers.get("cookie", ""), secure=ours.secure)
    if session is None:
        raise guest()
    check_browser(method, headers, ours)
    return Shown(Door.COOKIE, session)


def identify(connection: Connection, shown: Shown, now: int) -> Identified:
    """Raises OpenPaiError (401)."""
    token = find_token(connection, shown.token, now)
    if token is None or token.kind not in shown.door.value:
        raise invalid_token()
    user = user_by_id(connection, token.user_id)
    if user is None or (shown.name is not None and key_of(shown.name) != key_of(user.name)):
        raise invalid_token()
    caller = Caller(user.id, user.name, user.admin, token.kind, token.handle, user.groups)
    return Identified(caller, token.use_is_old(now))


def require_as_before(connection: Connection, caller: Caller, now: int) -> None:
    """That what was shown still lets in whoever it let in. Raises OpenPaiError (401)."""
    token = living_token(connection, caller.user_id, caller.handle, now)
    user = user_by_id(connection, caller.user_id)
    if token is None or user is None or user.disabled is not None or user.admin != caller.admin:
        raise invalid_token()


def _authorization(header: str) -> Shown:
    scheme, _, value = header.partition(" ")
    value = value.strip()
    if len(value) > LONGEST_CREDENTIAL:
        raise invalid_token()
    if scheme.lower() == "bearer" and value:
        return Shown(Door.BEARER, value)
    if scheme.lower() == "basic":
        name, colon, token = _decoded(value).partition(":")
        if name and colon:
            return Shown(Door.BASIC, token, name)
    raise invalid_token()


def _decoded(value: str) -> str:
    try:
        return base64.b64decode(value, validate=True).decode()
    except (binascii.Error, ValueError):  # not even ASCII, or bytes that are no text
        raise invalid_token() from None
