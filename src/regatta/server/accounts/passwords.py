"""Passwords as argon2id hashes: made, checked, and made again when the parameters change.

A hash costs 64 MiB and a tenth of a second, so at most two are worked on at a time, in threads, and
only so many wait. The bound is the pool's own: somebody who hangs up while his hash is being made
frees no place before it is done, as he would with a semaphore.

A name that nobody has is checked against a hash of nobody's: it takes the same work as a wrong
password, and how long an answer takes tells nobody which names there are. (OpenPAI's sign-in says
so in its text; other doors need not.) A hash with older parameters takes what those take, until its
owner signs in and it is made again.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from regatta.server.accounts.account_rules import LONGEST_PASSWORD, password_bytes
from regatta.server.openpai_errors import TooManyRequests

AT_A_TIME = 2
#: With two at a time, the last of them waits a few seconds.
MOST_WAITING = 64

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Checked:
    right: bool
    #: To be stored instead, where the password was right and its hash is not made as it would be
    #: today.
    rehashed: str | None = None


class Hashes:
    """The work itself, where it is called; for commands. A server asks `Passwords`."""

    def __init__(self, hasher: PasswordHasher | None = None) -> None:
        self._hasher = hasher or PasswordHasher()
        self._nobodys = self._hasher.hash(secrets.token_bytes(16))

    def make(self, password: str) -> str:
        return self._hasher.hash(password_bytes(password))

    def check(self, stored: str | None, password: str) -> Checked:
        """`stored`: None for a user that does not exist."""
        given = password_bytes(password)
        # What is too long is nobody's password; it is cut, and worked on like any other.
        against = self._nobodys
        if stored is not None and len(given) <= LONGEST_PASSWORD:
            against = stored
        if not self._matches(against, given[:LONGEST_PASSWORD]):
            return Checked(False)
        old = self._hasher.check_needs_rehash(against)
        return Checked(True, self.make(password) if old else None)

    def _matches(self, stored: str, given: bytes) -> bool:
        try:
            return self._hasher.verify(stored, given)
        except (VerificationError, InvalidHashError):  # no hash: a user without a password
            return False


class Passwords:
    """`Hashes`, for an event loop that must not stand still meanwhile."""

    def __init__(self, hashes: Hashes | None = None) -> None:
        self._hashes = hashes or Hashes()
        self._pool = ThreadPoolExecutor(AT_A_TIME, thread_name_prefix="passwords")
        self._waiting = 0

    async def make(self, password: str) -> str:
        return await self._work(lambda: self._hashes.make(password))

    async def check(self, stored: str | None, password: str) -> Checked:
        return await self._work(lambda: self._hashes.check(stored, password))

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _work(self, what: Callable[[], _T]) -> _T:
        if self._waiting >= MOST_WAITING:
            raise TooManyRequests("too many people sign in at this moment", 1)
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, what)
        finally:
            self._waiting -= 1
