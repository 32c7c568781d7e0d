from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Connection, select

from regatta.server.accounts import user_groups as groups
from regatta.server.accounts.tables import MEMBERSHIPS
from regatta.server.accounts.user_groups import Group, GroupChanges
from regatta.server.accounts.users import UserChanges, get_user, update_user
from tests.server.accounts.people import NOW, a_user, refused


def a_group(connection: Connection, name: str, **acls: Any) -> Group:
    extension = {"acls": acls} if acls else {}
    return groups.create_group(connection, Group(name, "", "", extension), NOW)


def names(found: list[Any]) -> list[str]:
    return [one.name for one in found]


def test_two_groups_are_always_there(connection: Connection) -> None:
    groups.ensure_groups(connection, NOW)
    assert names(groups.list_groups(connection)) == ["admingroup", "default"]
    grants = {group.name: group.extension for group in groups.list_groups(connection)}
    assert grants == {
        "default": {"acls": {"admin": False, "virtualClusters": ["default"], "storageConfigs": []}},
        "admingroup": {"acls": {"admin": True, "virtualClusters": [], "storageConfigs": []}},
    }


def test_what_was_changed_about_them_stays(connection: Connection) -> None:
    groups.update_group(connection, "default", GroupChanges(description="all of us"))
    groups.ensure_groups(connection, NOW)
    assert groups.get_group(connection, "default").description == "all of us"


@pytest.mark.parametrize("name", ["default", "admingroup", "AdminGroup"])
def test_they_are_neither_removed_nor_made(connection: Connection, name: str) -> None:
    with refused(403, "ForbiddenKeyError", "always there"):
        groups.delete_group(connection, name)
    with refused(409, "ConflictGroupError", "already exists"):
        a_group(connection, name)


def test_a_group_is_as_created(connection: Connection) -> None:
    made = groups.create_group(connection, Group("devs", "we", "ext", {"a": 1}), NOW)
    assert made == Group("devs", "we", "ext", {"a": 1}) == groups.get_group(connection, "DEVS")
    assert groups.openpai_group(made) == {
        "groupname": "devs",
        "description": "we",
        "externalName": "ext",
        "extension": {"a": 1},
    }


@pytest.mark.parametrize(
    ("group", "said"),
    [
        (Group("a-b", "", "", {}), "groupname is"),
        (Group("devs", "x" * 5000, "", {}), "description is"),
        (Group("devs", "", "a\0b", {}), "externalName is"),
        (Group("devs", "", "", {"acls": {"admin": True}}), "extension.acls.admin is"),
    ],
)
def test_what_breaks_a_rule_makes_no_group(connection: Connection, group: Group, said: str) -> None:
    with refused(400, "InvalidParametersError", said):
        groups.create_group(connection, group, NOW)
    assert len(groups.list_groups(connection)) == 2


@pytest.mark.parametrize("name", ["devs", "DEVS"])
def test_a_name_is_given_once(connection: Connection, name: str) -> None:
    a_group(connection, "devs")
    with refused(409, "ConflictGroupError", f"Group name {name} already exists."):
        a_group(connection, name)


@pytest.mark.parametrize(
    ("changes", "after"),
    [
        (GroupChanges(), Group("devs", "we", "ext", {"a": 1})),
        (GroupChanges(description=""), Group("devs", "", "ext", {"a": 1})),
        (GroupChanges(external_name="x"), Group("devs", "we", "x", {"a": 1})),
        (GroupChanges(extension={"b": 2}), Group("devs", "we", "ext", {"a": 1, "b": 2})),
        (
            GroupChanges(extension={"b": 2}, replace_extension=True),
            Group("devs", "we", "ext", {"b": 2}),
        ),
    ],
)
def test_only_what_is_said_changes(
    connection: Connection, changes: GroupChanges, after: Group
) -> None:
    groups.create_group(connection, Group("devs", "we", "ext", {"a": 1}), NOW)
    assert groups.update_group(connection, "devs", changes) == after


def test_no_change_makes_admins(connection: Connection) -> None:
    a_group(connection, "devs")
    with refused(400, "InvalidParametersError", "admingroup makes"):
        groups.update_group(connection, "devs", GroupChanges(extension={"acls": {"admin": True}}))


def missing(connection: Connection, name: str) -> dict[str, Any]:
    return {
        "get": lambda: groups.get_group(connection, name),
        "update": lambda: groups.update_group(connection, name, GroupChanges()),
        "delete": lambda: groups.delete_group(connection, name),
        "members": lambda: groups.members_of(connection, name),
        "add": lambda: groups.add_to_group(connection, "ann", name),
        "set": lambda: groups.set_groups(connection, "ann", ["default", name]),
    }


@pytest.mark.parametrize("what", missing(None, ""))  # type: ignore[arg-type]
@pytest.mark.parametrize("name", ["none", "a\0b"])
def test_a_group_that_is_not_there_is_not_found(
    connection: Connection, what: str, name: str
) -> None:
    a_user(connection, "ann")
    with refused(404, "NoGroupError", f"Group {name} is not found."):
        missing(connection, name)[what]()
    assert get_user(connection, "ann").groups == ("default",)


@pytest.mark.parametrize("change", [groups.add_to_group, groups.remove_from_group])
def test_a_user_who_is_not_there_joins_nothing(connection: Connection, change: Any) -> None:
    a_group(connection, "devs")
    with refused(404, "NoUserError", "User bob is not found."):
        change(connection, "bob", "devs")


def test_users_join_and_leave(connection: Connection) -> None:
    a_user(connection, "ann")
    a_user(connection, "bob")
    for group in ("devs", "ops"):
        a_group(connection, group)

    assert groups.add_to_group(connection, "ann", "devs").groups == ("default", "devs")
    assert groups.add_to_group(connection, "ann", "devs").groups == ("default", "devs")
    groups.add_to_group(connection, "ann", "OPS")
    assert names(groups.members_of(connection, "ops")) == ["ann"]
    assert names(groups.members_of(connection, "default")) == ["ann", "bob"]
    assert groups.remove_from_group(connection, "ann", "devs").groups == ("default", "ops")
    assert groups.remove_from_group(connection, "ann", "devs").groups == ("default", "ops")


def test_a_list_of_groups_replaces_the_one_before(connection: Connection) -> None:
    a_user(connection, "ann")
    for group in ("a", "b", "c"):
        a_group(connection, group)
    groups.set_groups(connection, "ann", ["a", "b"])

    assert groups.set_groups(connection, "ann", ["c", "b", "c"]).groups == ("default", "b", "c")
    assert groups.set_groups(connection, "ann", []).groups == ("default",)


def test_a_users_groups_are_by_name_however_they_came(connection: Connection) -> None:
    a_user(connection, "ann")
    for group in ("c", "B", "a_b", "ab"):
        a_group(connection, group)
        groups.add_to_group(connection, "ann", group)
    assert get_user(connection, "ann").groups == ("default", "a_b", "ab", "B", "c")
    assert names(groups.list_groups(connection)) == ["a_b", "ab", "admingroup", "B", "c", "default"]


def test_nobody_leaves_default(connection: Connection) -> None:
    a_user(connection, "ann")
    assert groups.remove_from_group(connection, "ann", "default").groups == ("default",)


def test_admingroup_and_being_an_admin_are_one(connection: Connection) -> None:
    a_user(connection, "root1", admin=True)
    a_user(connection, "ann")

    assert groups.add_to_group(connection, "ann", "admingroup").admin
    assert names(groups.members_of(connection, "admingroup")) == ["ann", "root1"]
    update_user(connection, "ann", UserChanges(admin=False))
    assert names(groups.members_of(connection, "admingroup")) == ["root1"]
    assert groups.set_groups(connection, "ann", ["admingroup"]).admin
    assert not groups.remove_from_group(connection, "ann", "AdminGroup").admin


@pytest.mark.parametrize(
    "leave",
    [
        lambda c: groups.remove_from_group(c, "ann", "admingroup"),
        lambda c: groups.set_groups(c, "ann", ["default"]),
    ],
)
def test_the_last_admin_does_not_leave_admingroup(connection: Connection, leave: Any) -> None:
    a_user(connection, "ann", admin=True)
    with refused(403, "ForbiddenUserError", "last admin"):
        leave(connection)
    assert get_user(connection, "ann").admin


def test_a_group_that_goes_leaves_its_users(connection: Connection) -> None:
    a_user(connection, "ann")
    bob = a_user(connection, "bob")
    for user, group in (("ann", "devs"), ("bob", "ops")):
        a_group(connection, group)
        groups.add_to_group(connection, user, group)

    assert groups.delete_group(connection, "devs").name == "devs"

    assert get_user(connection, "ann").groups == ("default",)
    assert connection.execute(select(MEMBERSHIPS.c.user_id)).scalars().all() == [bob.id]


def test_peers_share_a_group_and_default_is_none(connection: Connection) -> None:
    people = {name: a_user(connection, name) for name in ("ann", "bob", "cy", "dee")}
    for name, group in (("ann", "devs"), ("bob", "devs"), ("ann", "ops"), ("cy", "ops")):
        if group not in names(groups.list_groups(connection)):
            a_group(connection, group)
        groups.add_to_group(connection, name, group)

    def peers(name: str) -> set[str]:
        return set(groups.peers_of(connection, people[name].id))

    assert peers("ann") == {"ann", "bob", "cy"}
    assert peers("bob") == {"ann", "bob"}
    assert peers("dee") == set()


def test_a_user_may_use_what_was_granted_and_exists(connection: Connection) -> None:
    a_user(connection, "boss", admin=True)
    a_user(connection, "ann", email="a@b", virtual_clusters=["mine", "gone"], extension={"x": 1})
    a_group(connection, "devs", virtualClusters=["theirs", "mine"], storageConfigs=["nfs"])
    a_group(connection, "others", virtualClusters=["secret"])
    ann = groups.add_to_group(connection, "ann", "devs")
    every = ["default", "theirs", "mine", "secret"]
    listed = groups.list_groups(connection)

    assert groups.openpai_user(ann, listed, every) == {
        "username": "ann",
        "email": "a@b",
        "grouplist": ["default", "devs"],
        "admin": False,
        "virtualCluster": ["mine", "default", "theirs"],
        "storageConfig": ["nfs"],
        "extension": {"x": 1},
    }
    boss = groups.openpai_user(get_user(connection, "boss"), listed, every)
    assert boss["virtualCluster"] == every
    assert boss["admin"] is True
