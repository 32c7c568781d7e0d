"""The uid of a user is chosen while others write, and is nobody else's."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Collection

import pytest

from regatta.server.accounts.unix_accounts import ensure_unix_uid
from regatta.server.accounts.users import User, set_unix_uid
from regatta.server.records.team_database import Database
from tests.server.accounts.people import a_user


@pytest.fixture
def people(accounts: Database, engine: object) -> Database:
    for name in ("ann", "bob"):
        accounts.run_here(a_user, name)
    return accounts


class Choice:
    """Says 5000, 5001 and so on; before each, whatever `meanwhile` has for it is done."""

    def __init__(self, database: Database, *meanwhile: tuple[str, int]) -> None:
        self.database, self.meanwhile = database, list(meanwhile)
        self.held: list[Collection[int]] = []
        self.threads: set[threading.Thread] = set()

    def __call__(self, user: User, held: Collection[int]) -> int:
        self.threads.add(threading.current_thread())
        self.held.append(held)
        if self.meanwhile:
            # A write of somebody else's: it waits for nobody who holds the database.
            self.database.run_here(set_unix_uid, *self.meanwhile.pop(0))
        return 4999 + len(self.held)


def test_others_write_while_it_is_chosen(people: Database) -> None:
    choice = Choice(people, ("bob", 6000))
    assert asyncio.run(ensure_unix_uid(people, "ann", choice)).unix_uid == 5000
    assert choice.held == [set()]
    assert threading.current_thread() not in choice.threads


def test_one_that_somebody_else_got_meanwhile_is_chosen_anew(people: Database) -> None:
    choice = Choice(people, ("bob", 5000))
    assert asyncio.run(ensure_unix_uid(people, "ann", choice)).unix_uid == 5001
    assert choice.held == [set(), {5000}]


def test_one_that_the_user_was_given_meanwhile_stays(people: Database) -> None:
    choice = Choice(people, ("ann", 7000))
    assert asyncio.run(ensure_unix_uid(people, "ann", choice)).unix_uid == 7000
    assert asyncio.run(ensure_unix_uid(people, "ann", choice)).unix_uid == 7000
    assert len(choice.held) == 1
