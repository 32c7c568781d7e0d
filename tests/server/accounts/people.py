"""People for tests, and what their doors need: hashes that cost little, a clock, a database."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from argon2 import PasswordHasher
from sqlalchemy import Connection, Engine

from regatta.server.accounts.caller import Caller
from regatta.server.accounts.passwords import Hashes
from regatta.server.accounts.tokens import Kind
from regatta.server.accounts.users import NewUser, User, create_user
from regatta.server.openpai_errors import OpenPaiError

NOW = 1_800_000_000_000
PASSWORD = "correct horse"
CHEAP = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)


def a_user(connection: Connection, name: str, *, admin: bool = False, **more: Any) -> User:
    return create_user(connection, NewUser(name, admin=admin, **more), "no hash", NOW)


def a_caller(
    name: str = "ann", *, admin: bool = False, kind: Kind = Kind.SIGN_IN, user_id: int = 1
) -> Caller:
    return Caller(user_id, name, admin, kind, "0123456789abcdef", ("default",))


class CountingHashes(Hashes):
    """With a note of every check: against which hash, and whether it was the same."""

    def __init__(self, hasher: PasswordHasher = CHEAP) -> None:
        self.checked: list[str] = []
        self.made = 0
        super().__init__(hasher)

    def make(self, password: str) -> str:
        self.made += 1
        return super().make(password)

    def _matches(self, stored: str, given: bytes) -> bool:
        self.checked.append(stored)
        return super()._matches(stored, given)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Database:
    """As a server's: one transaction a call. `between` runs before each but the first."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.calls = 0
        self.between: Callable[[Connection], None] | None = None

    async def run(self, work: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        self.calls += 1
        if self.between is not None and self.calls > 1:
            with self._engine.begin() as connection:
                self.between(connection)
            self.between = None
        with self._engine.begin() as connection:
            return work(connection, *args, **kwargs)


class refused:
    """`with refused(404, "NoUserError", "is not found"):`, the text being a part of it."""

    def __init__(self, status: int, code: str, text: str = "") -> None:
        self._expected = (status, code)
        self._text = text
        self._raises = pytest.raises(OpenPaiError)

    def __enter__(self) -> None:
        self._info = self._raises.__enter__()

    def __exit__(self, *raised: Any) -> bool:
        caught = bool(self._raises.__exit__(*raised))
        error = self._info.value
        assert (error.status, error.code) == self._expected, str(error)
        assert self._text in str(error)
        return caught
