"""Gives a user the Unix account as which its jobs run, once and for good.

Which one is found out between two looks at the database: accounts of a machine may be asked for
over the network, and nobody's write is to wait for that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection

from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from regatta.server.accounts.users import User, get_user, list_users, lock_user, set_unix_uid
from regatta.server.records.team_database import Database


async def ensure_unix_uid(
    database: Database, name: str, choose: Callable[[User, Collection[int]], int]
) -> User:
    """The user with its uid; `choose` is told those that are others' and says which, where none is
    set yet. It may block, and is asked once more where somebody else got that one meanwhile."""
    while True:
        user, held = await database.read(_user_and_held, name)
        if user.unix_uid is not None:
            return user
        uid = await asyncio.to_thread(choose, user, held)
        given = await database.run(_give, name, uid)
        if given is not None:
            return given


def _user_and_held(connection: Connection, name: str) -> tuple[User, set[int]]:
    held = {other.unix_uid for other in list_users(connection) if other.unix_uid is not None}
    return get_user(connection, name), held


def _give(connection: Connection, name: str, uid: int) -> User | None:
    """None: it is somebody else's by now."""
    lock_user(connection, name)
    user, held = _user_and_held(connection, name)
    if user.unix_uid is not None:
        return user
    if uid in held:
        return None
    try:
        with connection.begin_nested():
            return set_unix_uid(connection, name, uid)
    except IntegrityError:  # since that look
        return None
