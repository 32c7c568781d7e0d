"""Isolations of a test's own, and accounts for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from regatta.engines.base import Shell
from regatta.server.accounts.users import NewUser, User, create_user
from regatta.server.records.team_database import Database
from regatta.server.team.isolating.isolation import (
    Isolation,
    IsolationSettings,
)

NOW = 1_700_000_000_000
UIDS = range(240_000, 240_010)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = Database(f"sqlite:///{tmp_path}/team.db")
    yield opened
    opened.close()


@pytest.fixture
def new_user(database: Database) -> Callable[[str], User]:
    return lambda name: database.run_here(create_user, NewUser(name=name), "hash", NOW)


@pytest.fixture
def isolate(database: Database, place: Path) -> Callable[..., Isolation]:
    def make(kind: str = "users", **more: object) -> Isolation:
        said = {"work": place / "work", "uids": UIDS, "register": place / "uids", **more}
        settings = IsolationSettings(kind=kind, **said)  # type: ignore[arg-type]
        return Isolation(settings, database, place / "home/state")

    return make


def shell_for(isolation: Isolation, user: User, job_id: str) -> Shell:
    return asyncio.run(isolation.shell_for(user, job_id))


def uid_of(isolation: Isolation, user: User, job_id: str = "job") -> int:
    who = shell_for(isolation, user, job_id).run_as
    assert who is not None
    return who.uid
