"""Gives a user the Unix account as which its jobs run, once and for good."""

from __future__ import annotations

from collections.abc import Callable, Collection

from sqlalchemy import Connection

from regatta.server.accounts.users import User, get_user, list_users, lock_user, set_unix_uid


def ensure_unix_uid(
    connection: Connection, name: str, choose: Callable[[User, Collection[int]], int]
) -> User:
    """The user with its uid; `choose` is told those that are others' and says which, where none is
    set yet."""
    lock_user(connection, name)
    user = get_user(connection, name)
    if user.unix_uid is not None:
        return user
    held = {other.unix_uid for other in list_users(connection) if other.unix_uid is not None}
    return set_unix_uid(connection, name, choose(user, held))
