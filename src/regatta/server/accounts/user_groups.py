"""Groups in the database, who is in them, and what they grant.

`default` and `admingroup` are always there and cannot be removed. Everybody is in the first; being
in the second and being an admin are the same thing, so that putting somebody in, or taking somebody
out, makes an admin or ends one. What else a group grants stands in `extension.acls`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from regatta.server.accounts import account_rules as rules
from regatta.server.accounts.tables import GROUPS, LONGEST_NAME, MEMBERSHIPS, USERS
from regatta.server.accounts.users import (
    User,
    UserChanges,
    get_user,
    list_users,
    lock_user,
    update_user,
)
from regatta.server.openpai_errors import group_exists, no_group, reserved_key

_ALWAYS: dict[str, tuple[str, dict[str, Any]]] = {
    rules.DEFAULT_GROUP: (
        "every user",
        {"admin": False, "virtualClusters": [rules.DEFAULT_CLUSTER], "storageConfigs": []},
    ),
    rules.ADMIN_GROUP: (
        "every admin",
        {"admin": True, "virtualClusters": [], "storageConfigs": []},
    ),
}


@dataclass(frozen=True, slots=True)
class Group:
    name: str
    description: str
    external_name: str
    extension: dict[str, Any]

    def granted(self, what: str) -> list[str]:
        """`virtualClusters` or `storageConfigs`."""
        return list(self.extension.get("acls", {}).get(what, []))


@dataclass(frozen=True, slots=True)
class GroupChanges:
    """None: as it is."""

    description: str | None = None
    external_name: str | None = None
    extension: Mapping[str, Any] | None = None
    #: OpenPAI's `patch: false`.
    replace_extension: bool = False


def ensure_groups(connection: Connection, now: int) -> None:
    """Once, when a server or a command opens the database."""
    for name, (description, acls) in _ALWAYS.items():
        if _row(connection, name) is None:
            _insert(connection, Group(name, description, "", {"acls": acls}), now)


def create_group(connection: Connection, group: Group, now: int) -> Group:
    rules.check_group_name(group.name)
    rules.check_text("description", group.description)
    rules.check_text("externalName", group.external_name)
    rules.check_group_extension(group.name, group.extension)
    if group.name.lower() in rules.SYSTEM_GROUPS or _row(connection, group.name) is not None:
        raise group_exists(group.name)
    try:
        _insert(connection, group, now)
    except IntegrityError:  # somebody was quicker
        raise group_exists(group.name) from None
    return get_group(connection, group.name)


def get_group(connection: Connection, name: str) -> Group:
    return _group(_required(connection, name))


def list_groups(connection: Connection) -> list[Group]:
    """By name."""
    rows = connection.execute(select(GROUPS))
    return sorted(map(_group, rows), key=lambda group: rules.key_of(group.name))


def update_group(connection: Connection, name: str, changes: GroupChanges) -> Group:
    row = _required(connection, name, lock=True)
    values: dict[str, Any] = {}
    if changes.description is not None:
        values["description"] = rules.check_text("description", changes.description)
    if changes.external_name is not None:
        values["external_name"] = rules.check_text("externalName", changes.external_name)
    if changes.extension is not None:
        before = {} if changes.replace_extension else row.extension
        after = {**before, **changes.extension}
        values["extension"] = rules.check_group_extension(row.name, after)
    if values:
        connection.execute(update(GROUPS).where(GROUPS.c.id == row.id).values(values))
    return get_group(connection, name)


def delete_group(connection: Connection, name: str) -> Group:
    """Its users stay."""
    row = _required(connection, name)
    if row.name in rules.SYSTEM_GROUPS:
        raise reserved_key(f"Group {row.name} is the system's and is always there.")
    connection.execute(delete(MEMBERSHIPS).where(MEMBERSHIPS.c.group_id == row.id))
    connection.execute(delete(GROUPS).where(GROUPS.c.id == row.id))
    return _group(row)


def members_of(connection: Connection, name: str) -> list[User]:
    group = get_group(connection, name)
    return [user for user in list_users(connection) if group.name in user.groups]


def add_to_group(connection: Connection, user_name: str, group_name: str) -> User:
    lock_user(connection, user_name)
    user = get_user(connection, user_name)
    return set_groups(connection, user_name, [*user.groups, group_name])


def remove_from_group(connection: Connection, user_name: str, group_name: str) -> User:
    """Who is not in it is left alone, as is `default`, which nobody leaves."""
    lock_user(connection, user_name)
    user = get_user(connection, user_name)
    key = rules.key_of(group_name)
    return set_groups(connection, user_name, [g for g in user.groups if rules.key_of(g) != key])


def set_groups(connection: Connection, user_name: str, names: Sequence[str]) -> User:
    """These and no others, but for `default`."""
    lock_user(connection, user_name)
    user = get_user(connection, user_name)
    wanted = {row.name: row.id for row in (_required(connection, name) for name in names)}
    admin = rules.ADMIN_GROUP in wanted
    if admin != user.admin:
        update_user(connection, user.name, UserChanges(admin=admin))
    connection.execute(delete(MEMBERSHIPS).where(MEMBERSHIPS.c.user_id == user.id))
    others = sorted(number for name, number in wanted.items() if name not in rules.SYSTEM_GROUPS)
    if others:
        rows = [{"user_id": user.id, "group_id": number} for number in others]
        connection.execute(insert(MEMBERSHIPS), rows)
    return get_user(connection, user.name)


def peers_of(connection: Connection, user_id: int) -> frozenset[str]:
    """Who shares a group with this user, that user as well. `default` makes nobody a peer: all are
    in it; nor does `admingroup`, whose users see everything in any case."""
    mine = select(MEMBERSHIPS.c.group_id).where(MEMBERSHIPS.c.user_id == user_id)
    found = connection.execute(
        select(USERS.c.name)
        .join(MEMBERSHIPS, MEMBERSHIPS.c.user_id == USERS.c.id)
        .where(MEMBERSHIPS.c.group_id.in_(mine))
        .distinct()
    ).scalars()
    return frozenset(found)


def clusters_of(user: User, groups: Iterable[Group], every: Sequence[str]) -> list[str]:
    """Where a user may submit: an admin everywhere (`every` names the virtual clusters that there
    are), others where they or one of their groups were granted it."""
    if user.admin:
        return list(every)
    granted = [*user.virtual_clusters, *_granted(user, groups, "virtualClusters")]
    return [name for name in dict.fromkeys(granted) if name in every]


def storages_of(user: User, groups: Iterable[Group]) -> list[str]:
    return list(dict.fromkeys(_granted(user, groups, "storageConfigs")))


def openpai_user(user: User, groups: Sequence[Group], every: Sequence[str]) -> dict[str, Any]:
    """As OpenPAI's clients read a user."""
    return {
        "username": user.name,
        "email": user.email,
        "grouplist": list(user.groups),
        "admin": user.admin,
        "virtualCluster": clusters_of(user, groups, every),
        "storageConfig": storages_of(user, groups),
        "extension": user.extension,
    }


def openpai_group(group: Group) -> dict[str, Any]:
    return {
        "groupname": group.name,
        "description": group.description,
        "externalName": group.external_name,
        "extension": group.extension,
    }


def _granted(user: User, groups: Iterable[Group], what: str) -> list[str]:
    return [name for group in groups if group.name in user.groups for name in group.granted(what)]


def _insert(connection: Connection, group: Group, now: int) -> None:
    connection.execute(
        insert(GROUPS).values(
            name=group.name,
            name_key=rules.key_of(group.name),
            description=group.description,
            external_name=group.external_name,
            extension=group.extension,
            created=now,
        )
    )


def _required(connection: Connection, name: str, *, lock: bool = False) -> Row[Any]:
    row = _row(connection, name, lock=lock)
    if row is None:
        raise no_group(name[:LONGEST_NAME])
    return row


def _row(connection: Connection, name: str, *, lock: bool = False) -> Row[Any] | None:
    if not rules.can_be_kept(name):
        return None
    wanted = select(GROUPS).where(GROUPS.c.name_key == rules.key_of(name))
    return connection.execute(wanted.with_for_update() if lock else wanted).one_or_none()


def _group(row: Row[Any]) -> Group:
    return Group(row.name, row.description, row.external_name, row.extension)
