"""Accounts from the command line of the machine that holds the database. No server is asked, and
whoever can write the database is an admin by that.

Each function does what a command says, on a connection that is in a transaction, and writes it into
the audit. Passwords come from a prompt or a file, never from the arguments of a command.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from sqlalchemy import Connection

from regatta.server.accounts import user_groups, users
from regatta.server.accounts.account_rules import (
    check_clusters,
    check_password,
    check_user_name,
)
from regatta.server.accounts.audit import Entry, write_audit
from regatta.server.accounts.user_groups import Group, GroupChanges
from regatta.server.accounts.users import NewUser, User, UserChanges

#: Who the audit names: no user can be called this.
COMMAND_LINE = "regatta"


class Hashing(Protocol):
    """`passwords.Hashes`."""

    def make(self, password: str) -> str: ...


def add_user(
    connection: Connection,
    hashes: Hashing,
    name: str,
    password: str,
    now: int,
    *,
    admin: bool = False,
    email: str = "",
) -> User:
    user_groups.ensure_groups(connection, now)
    check_user_name(name)
    check_password(name, password)
    new = NewUser(name, admin=admin, email=email)
    user = users.create_user(connection, new, hashes.make(password), now)
    _note(connection, now, f"users add {'--admin ' if admin else ''}{user.name}")
    return user


def list_users(connection: Connection) -> list[User]:
    return users.list_users(connection)


def remove_user(connection: Connection, name: str, now: int) -> User:
    user = users.delete_user(connection, name)
    _note(connection, now, f"users remove {user.name}")
    return user


def change_password(
    connection: Connection, hashes: Hashing, name: str, password: str, now: int
) -> User:
    """Ends the user's sign-ins, and none of his applications."""
    user = users.get_user(connection, name)
    check_password(user.name, password)
    users.set_password(connection, user.name, hashes.make(password), now)
    _note(connection, now, f"users password {user.name}")
    return user


def disable_user(connection: Connection, name: str, now: int) -> User:
    user = users.disable_user(connection, name, now)
    _note(connection, now, f"users disable {user.name}")
    return user


def enable_user(connection: Connection, name: str, now: int) -> User:
    user = users.enable_user(connection, name)
    _note(connection, now, f"users enable {user.name}")
    return user


def set_admin(connection: Connection, name: str, admin: bool, now: int) -> User:
    user = users.update_user(connection, name, UserChanges(admin=admin))
    _note(connection, now, f"users {'promote' if admin else 'demote'} {user.name}")
    return user


def set_clusters(
    connection: Connection, name: str, clusters: Sequence[str], known: Collection[str], now: int
) -> User:
    """Those that are this user's besides what groups grant; no others."""
    changes = UserChanges(virtual_clusters=tuple(clusters))
    user = users.update_user(connection, name, changes, known)
    _note(connection, now, f"users clusters {user.name} {' '.join(clusters)}".rstrip())
    return user


def set_unix_uid(connection: Connection, name: str, uid: int | None, now: int) -> User:
    user = users.set_unix_uid(connection, name, uid)
    _note(connection, now, f"users uid {user.name} {uid if uid is not None else 'none'}")
    return user


def add_group(connection: Connection, name: str, now: int, description: str = "") -> Group:
    user_groups.ensure_groups(connection, now)
    group = user_groups.create_group(connection, Group(name, description, "", {}), now)
    _note(connection, now, f"groups add {group.name}")
    return group


def list_groups(connection: Connection, now: int) -> list[Group]:
    user_groups.ensure_groups(connection, now)
    return user_groups.list_groups(connection)


def set_group_clusters(
    connection: Connection, name: str, clusters: Sequence[str], known: Collection[str], now: int
) -> Group:
    """Those that all of this group are granted; no others."""
    user_groups.ensure_groups(connection, now)
    acls = user_groups.get_group(connection, name).extension.get("acls", {})
    granted = {**acls, "virtualClusters": check_clusters(clusters, known)}
    changes = GroupChanges(extension={"acls": granted})
    group = user_groups.update_group(connection, name, changes)
    _note(connection, now, f"groups clusters {group.name} {' '.join(clusters)}".rstrip())
    return group


def remove_group(connection: Connection, name: str, now: int) -> Group:
    group = user_groups.delete_group(connection, name)
    _note(connection, now, f"groups remove {group.name}")
    return group


def join_group(connection: Connection, user: str, group: str, now: int) -> User:
    """Into `admingroup`: makes an admin."""
    user_groups.ensure_groups(connection, now)
    joined = user_groups.add_to_group(connection, user, group)
    _note(connection, now, f"groups join {group} {joined.name}")
    return joined


def leave_group(connection: Connection, user: str, group: str, now: int) -> User:
    user_groups.ensure_groups(connection, now)
    left = user_groups.remove_from_group(connection, user, group)
    _note(connection, now, f"groups leave {group} {left.name}")
    return left


def _note(connection: Connection, now: int, words: str) -> None:
    write_audit(connection, Entry(now, COMMAND_LINE, words, address="here"))
