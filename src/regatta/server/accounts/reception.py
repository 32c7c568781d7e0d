"""What people do with a password: sign in with it, change it, be given one.

Hashing takes long and a transaction must not, so each is a look, the work, and a write that holds
only if what was looked at is still so.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from sqlalchemy import Connection

from regatta.server.accounts.account_rules import check_password, check_user_name
from regatta.server.accounts.caller import Caller, require_admin, require_person
from regatta.server.accounts.passwords import Checked, Passwords
from regatta.server.accounts.sign_in_guard import SignInGuard, Try
from regatta.server.accounts.tables import LONGEST_NAME
from regatta.server.accounts.tokens import Issued, Kind, issue, lifetime
from regatta.server.accounts.users import (
    NewUser,
    Stored,
    User,
    create_user,
    get_user,
    renew_hash,
    set_password,
    stored_password,
)
from regatta.server.openpai_errors import (
    WRONG_OLD_PASSWORD,
    TooManyRequests,
    forbidden,
    incorrect_password,
    no_user,
)

_P = ParamSpec("_P")
_T = TypeVar("_T")


class Runs(Protocol):
    """The database, as much as is needed of it here."""

    async def run(
        self,
        work: Callable[Concatenate[Connection, _P], _T],
        *args: _P.args,
        **kwargs: _P.kwargs,
    ) -> _T:
        """Calls `work(connection, ...)` in one transaction."""
        ...


@dataclass(frozen=True, slots=True)
class SignedIn:
    token: Issued
    name: str
    admin: bool


class Reception:
    def __init__(
        self,
        database: Runs,
        passwords: Passwords,
        guard: SignInGuard,
        now: Callable[[], int],
    ) -> None:
        """`now`: in milliseconds since 1970."""
        self._database = database
        self._passwords = passwords
        self._guard = guard
        self._now = now

    async def sign_in(
        self,
        name: str,
        password: str,
        *,
        address: str,
        expiration: int | str | None = None,
        kind: Kind = Kind.SIGN_IN,
    ) -> SignedIn:
        """`address`: the client's, which is what a limit counts."""
        seconds = lifetime(expiration)
        attempt = self._guard.begin(address, name)
        stored = await self._database.run(stored_password, name)
        checked = await self._check(attempt, stored, password)
        if stored is None:
            raise no_user(name[:LONGEST_NAME], 400)
        if not checked.right:
            raise incorrect_password()
        attempt.succeeded()
        if stored.disabled:  # told to nobody who does not know the password
            raise forbidden(f"User {stored.name} is disabled; ask an admin to enable it.")
        return await self._database.run(
            _let_in, stored, checked.rehashed, kind, self._now(), seconds
        )

    async def change_own_password(
        self, caller: Caller, old: str, new: str, *, address: str
    ) -> None:
        """A stolen token must not become a password, so the old one is asked for; and not become a
        way to guess it, so that counts as signing in."""
        require_person(caller)
        check_password(caller.name, new, "newPassword")
        attempt = self._guard.begin(address, caller.name)
        stored = await self._database.run(stored_password, caller.name)
        checked = await self._check(attempt, stored, old)
        if stored is None or not checked.right:
            raise forbidden(WRONG_OLD_PASSWORD)
        attempt.succeeded()
        after = await self._passwords.make(new)
        if not await self._database.run(
            set_password,
            caller.name,
            after,
            self._now(),
            keep=caller.handle,
            replacing=stored.password,
        ):
            raise forbidden(WRONG_OLD_PASSWORD)

    async def _check(self, attempt: Try, stored: Stored | None, password: str) -> Checked:
        try:
            return await self._passwords.check(stored.password if stored else None, password)
        except TooManyRequests:
            attempt.not_made()
            raise

    async def set_password(self, caller: Caller, name: str, new: str) -> None:
        """By an admin, who needs not know the old one; for himself, too, as OpenPAI has it."""
        require_admin(caller)
        user = await self._database.run(get_user, name)
        check_password(user.name, new)
        after = await self._passwords.make(new)
        # Where it is his own, his token stays; among another's tokens it is not.
        await self._database.run(set_password, user.name, after, self._now(), keep=caller.handle)

    async def create_user(
        self,
        caller: Caller,
        new: NewUser,
        password: str,
        known_clusters: Collection[str] | None = None,
    ) -> User:
        require_admin(caller)
        check_user_name(new.name)  # before the work
        check_password(new.name, password)
        made = await self._passwords.make(password)
        return await self._database.run(create_user, new, made, self._now(), known_clusters)


def _let_in(
    connection: Connection,
    stored: Stored,
    rehashed: str | None,
    kind: Kind,
    now: int,
    seconds: int,
) -> SignedIn:
    current = stored_password(connection, stored.name, lock=True)
    if current is None or current.disabled or current.password != stored.password:
        raise incorrect_password()  # it was changed while it was being checked
    if rehashed is not None:
        renew_hash(connection, stored.user_id, stored.password, rehashed)
    token = issue(connection, current.user_id, kind, now, seconds)
    return SignedIn(token, current.name, current.admin)
