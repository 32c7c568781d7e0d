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
    UserChanges,
    create_user,
    get_user,
    renew_hash,
    set_password,
    stored_password,
    update_user,
)
from regatta.server.openpai_errors import (
    WRONG_OLD_PASSWORD,
    OpenPaiError,
    TooManyRequests,
    forbidden,
    incorrect_password,
    no_user,
    wrong_sign_in,
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
        *,
        tells_unknown_users: bool = False,
    ) -> None:
        """`now`: in milliseconds since 1970. `tells_unknown_users`: a name that nobody has is
        answered as OpenPAI does, and else as a wrong password is."""
        self._database = database
        self._passwords = passwords
        self._guard = guard
        self._now = now
        self._tells_unknown_users = tells_unknown_users

    async def sign_in(
        self,
        name: str,
        password: str,
        *,
        address: str,
        expiration: int | str | None = None,
        kind: Kind = Kind.SIGN_IN,
        known: Callable[[str], None] = lambda _: None,
    ) -> SignedIn:
        """`address`: the client's, which is what a limit counts. `known` is told whose account it
        is, also where the password is wrong; a name that nobody has is told to nobody."""
        seconds = lifetime(expiration)
        attempt = self._guard.begin(address, name)
        stored = await self._database.run(stored_password, name)
        if stored is not None:
            known(stored.name)
        checked = await self._check(attempt, stored, password)
        if stored is None or not checked.right:
            raise self._wrong(name, stored)
        attempt.succeeded()
        if stored.disabled:  # told to nobody who does not know the password
            raise forbidden(f"User {stored.name} is disabled; ask an admin to enable it.")
        signed_in = await self._database.run(
            _let_in, stored, checked.rehashed, kind, self._now(), seconds
        )
        if signed_in is None:  # it was changed while it was being checked
            raise self._wrong(name, stored)
        return signed_in

    def _wrong(self, name: str, stored: Stored | None) -> OpenPaiError:
        if not self._tells_unknown_users:
            return wrong_sign_in()
        return no_user(name[:LONGEST_NAME], 400) if stored is None else incorrect_password()

    async def change_own_password(
        self,
        caller: Caller,
        old: str,
        new: str,
        *,
        address: str,
        besides: UserChanges | None = None,
    ) -> None:
        """A stolen token must not become a password, so the old one is asked for; and not become a
        way to guess it, so that counts as signing in. `besides`: what changes with it."""
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
            _change_password,
            caller.name,
            after,
            self._now(),
            besides or UserChanges(),
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

    async def set_password(
        self,
        caller: Caller,
        name: str,
        new: str,
        besides: UserChanges | None = None,
        known_clusters: Collection[str] | None = None,
    ) -> None:
        """By an admin, who needs not know the old one; for himself, too, as OpenPAI has it.
        `besides`: what changes with it."""
        require_admin(caller)
        user = await self._database.run(get_user, name)
        check_password(user.name, new)
        after = await self._passwords.make(new)
        await self._database.run(
            _change_password,
            user.name,
            after,
            self._now(),
            besides or UserChanges(),
            known_clusters,
            # Where it is his own, his token stays; among another's tokens it is not.
            keep=caller.handle,
        )

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
) -> SignedIn | None:
    """None: the account is not what it was when its password was looked at."""
    current = stored_password(connection, stored.name, lock=True)
    if current is None or current.disabled or current.password != stored.password:
        return None
    if rehashed is not None:
        renew_hash(connection, stored.user_id, stored.password, rehashed)
    token = issue(connection, current.user_id, kind, now, seconds)
    return SignedIn(token, current.name, current.admin)


def _change_password(
    connection: Connection,
    name: str,
    password_hash: str,
    now: int,
    besides: UserChanges,
    known_clusters: Collection[str] | None = None,
    *,
    keep: str,
    replacing: str | None = None,
) -> bool:
    """All of it or nothing; False as `users.set_password` has it."""
    if not set_password(connection, name, password_hash, now, keep=keep, replacing=replacing):
        return False
    update_user(connection, name, besides, known_clusters)
    return True
