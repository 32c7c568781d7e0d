"""Tokens: `rgt_<handle>_<secret>`, opaque, and stored as a hash of their secret alone.

The handle names a token in lists and in the audit and opens nothing. The secret has 256 random
bits, so one round of SHA-256 hides it: there is nothing to guess. Whoever reads the database can
sign in as nobody.

Three kinds: from signing in, with an end; for applications, without one and for jobs alone; and of
a browser, which travels in a cookie and nowhere else. Changing a password revokes the others, as
OpenPAI does: those of sign-ins and browsers, since one of them may be why it is changed. Two sorts
stay: the token that changed it, because clients go on with it, and those of applications, because
each was made on purpose and is revoked by name.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, delete, func, insert, or_, select, update

from regatta.server.accounts.tables import TOKENS, USERS
from regatta.server.openpai_errors import OpenPaiError, forbidden, invalid_parameters, invalid_token

#: Seconds.
SHORTEST_LIFE, LONGEST_LIFE, USUAL_LIFE = 60, 604_800, 86_400
#: Of `last_used`, in milliseconds: a request in an hour writes, and the others only read.
USE_GRAIN = 3_600_000
#: How long a token that is over can still be looked up by somebody who asks what it was.
KEPT_AFTER = 86_400_000
#: Of one user, living: a script that signs in for every call ends its own oldest ones, and nobody
#: makes applications by the hundred on purpose.
MOST_SIGNED_IN, MOST_APPLICATIONS = 500, 100

_SHAPE = re.compile(r"rgt_([0-9a-f]{16})_([A-Za-z0-9_-]{43})")
_HANDLE = re.compile(r"[0-9a-f]{16}")
_NO_HASH = "0" * 64


class Kind(StrEnum):
    SIGN_IN = "sign-in"
    APPLICATION = "application"
    BROWSER = "browser"


@dataclass(frozen=True, slots=True)
class Issued:
    """The only time that the value is known."""

    value: str
    handle: str
    expires: int | None


@dataclass(frozen=True, slots=True)
class Token:
    """What may be shown of one."""

    handle: str
    user_id: int
    kind: Kind
    created: int
    expires: int | None
    last_used: int | None

    def use_is_old(self, now: int) -> bool:
        return self.last_used is None or now - self.last_used >= USE_GRAIN


def lifetime(expiration: int | str | None) -> int:
    """Seconds, of what a client sent: a form has text."""
    if expiration is None or expiration == "":
        return USUAL_LIFE
    digits = str(expiration)[:20]
    seconds = int(digits) if digits.isascii() and digits.isdigit() else 0
    if not SHORTEST_LIFE <= seconds <= LONGEST_LIFE:
        raise invalid_parameters(
            f"expiration is {str(expiration)[:40]!r}; it must be a number of seconds from "
            f"{SHORTEST_LIFE} to {LONGEST_LIFE}"
        )
    return seconds


def issue(
    connection: Connection, user_id: int, kind: Kind, now: int, seconds: int = USUAL_LIFE
) -> Issued:
    """`seconds` counts for all but applications, whose tokens have no end."""
    _require_user(connection, user_id)
    _make_room(connection, user_id, kind, now)
    handle, secret = secrets.token_hex(8), secrets.token_urlsafe(32)
    expires = None if kind is Kind.APPLICATION else now + seconds * 1000
    connection.execute(
        insert(TOKENS).values(
            handle=handle,
            secret_sha256=_hashed(secret),
            user_id=user_id,
            kind=kind,
            created=now,
            expires=expires,
        )
    )
    return Issued(f"rgt_{handle}_{secret}", handle, expires)


def find_token(connection: Connection, value: str, now: int) -> Token | None:
    """That lives, whose user may come in."""
    shape = _SHAPE.fullmatch(value)
    if shape is None:
        return None
    handle, secret = shape.groups()
    row = connection.execute(
        select(TOKENS)
        .join(USERS, USERS.c.id == TOKENS.c.user_id)
        .where(TOKENS.c.handle == handle, _living(now), USERS.c.disabled.is_(None))
    ).one_or_none()
    # An unknown handle is compared with something, too.
    same = hmac.compare_digest(_hashed(secret), row.secret_sha256 if row else _NO_HASH)
    return _token(row) if row is not None and same else None


def note_use(connection: Connection, handle: str, now: int) -> None:
    connection.execute(update(TOKENS).where(TOKENS.c.handle == handle).values(last_used=now))


def list_tokens(connection: Connection, user_id: int, now: int) -> list[Token]:
    """Those that live, the newest first."""
    rows = connection.execute(
        select(TOKENS)
        .where(TOKENS.c.user_id == user_id, _living(now))
        .order_by(TOKENS.c.created.desc(), TOKENS.c.id.desc())
    )
    return [_token(row) for row in rows]


def living_token(connection: Connection, user_id: int, handle: str, now: int) -> Token | None:
    row = connection.execute(
        select(TOKENS).where(TOKENS.c.handle == handle, TOKENS.c.user_id == user_id, _living(now))
    ).one_or_none()
    return _token(row) if row is not None else None


def revoke(connection: Connection, user_id: int, which: str, now: int) -> str:
    """By its handle, or by its value as OpenPAI's clients do: only one's own. The handle.

    Somebody else's, one that is not, and one that is over answer alike."""
    shape = _SHAPE.fullmatch(which)
    wanted = TOKENS.c.handle == (shape.group(1) if shape else which)
    if shape is not None:
        wanted &= TOKENS.c.secret_sha256 == _hashed(shape.group(2))
    elif not _HANDLE.fullmatch(which):
        raise _not_yours()
    revoked = connection.execute(
        update(TOKENS)
        .where(wanted, TOKENS.c.user_id == user_id, _living(now))
        .values(revoked=now)
        .returning(TOKENS.c.handle)
    ).scalar_one_or_none()
    if revoked is None:
        raise _not_yours()
    return str(revoked)


def revoke_after_password(
    connection: Connection, user_id: int, now: int, keep: str | None = None
) -> int:
    """All but the one that changed the password (`keep`, a handle) and applications; how many."""
    return connection.execute(
        update(TOKENS)
        .where(
            TOKENS.c.user_id == user_id,
            TOKENS.c.kind != Kind.APPLICATION,
            TOKENS.c.handle != (keep or ""),
            _living(now),
        )
        .values(revoked=now)
    ).rowcount


def revoke_all(connection: Connection, user_id: int, now: int) -> int:
    return connection.execute(
        update(TOKENS).where(TOKENS.c.user_id == user_id, _living(now)).values(revoked=now)
    ).rowcount


def purge(connection: Connection, now: int) -> int:
    """Forgets those that have been over for a while; how many."""
    before = now - KEPT_AFTER
    return connection.execute(
        delete(TOKENS).where(or_(TOKENS.c.expires <= before, TOKENS.c.revoked <= before))
    ).rowcount


def _require_user(connection: Connection, user_id: int) -> None:
    """Who is being removed or disabled at this moment gets none. The row is locked, so that whoever
    revokes a user's tokens sees this one, or is waited for."""
    wanted = select(USERS.c.id).where(USERS.c.id == user_id, USERS.c.disabled.is_(None))
    if connection.execute(wanted.with_for_update()).one_or_none() is None:
        raise invalid_token()


def _make_room(connection: Connection, user_id: int, kind: Kind, now: int) -> None:
    """For one more. The user's own that are over go as well."""
    connection.execute(
        delete(TOKENS).where(
            TOKENS.c.user_id == user_id,
            or_(TOKENS.c.expires <= now - KEPT_AFTER, TOKENS.c.revoked <= now - KEPT_AFTER),
        )
    )
    application = kind is Kind.APPLICATION
    alike = (
        TOKENS.c.user_id == user_id,
        (TOKENS.c.kind == kind) if application else (TOKENS.c.kind != Kind.APPLICATION),
        _living(now),
    )
    living = connection.execute(select(func.count()).where(*alike)).scalar_one()
    if application and living >= MOST_APPLICATIONS:
        raise forbidden(
            f"You have {living} application tokens, and {MOST_APPLICATIONS} is the most; "
            "revoke those that no program uses."
        )
    if not application and living >= MOST_SIGNED_IN:
        oldest = (
            select(TOKENS.c.id)
            .where(*alike)
            .order_by(TOKENS.c.created, TOKENS.c.id)
            .limit(living - MOST_SIGNED_IN + 1)
        )
        connection.execute(delete(TOKENS).where(TOKENS.c.id.in_(oldest)))


def _living(now: int) -> ColumnElement[bool]:
    return TOKENS.c.revoked.is_(None) & or_(TOKENS.c.expires.is_(None), TOKENS.c.expires > now)


def _token(row: Row[Any]) -> Token:
    return Token(row.handle, row.user_id, Kind(row.kind), row.created, row.expires, row.last_used)


def _hashed(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _not_yours() -> OpenPaiError:
    return forbidden("This is no living token of yours; list yours to see their handles.")
