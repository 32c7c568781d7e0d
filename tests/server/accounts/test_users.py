from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Connection, select

from regatta.server.accounts import users
from regatta.server.accounts.tables import MEMBERSHIPS, TOKENS, USERS
from regatta.server.accounts.tokens import Kind, find_token, issue
from regatta.server.accounts.user_groups import Group, add_to_group, create_group
from regatta.server.accounts.users import NewUser, UserChanges
from regatta.server.records.job_writes import delete_record
from regatta.server.records.submits import NewJob, begin_submit
from tests.server.accounts.people import NOW, a_user, refused


def test_a_user_is_as_created(connection: Connection) -> None:
    new = NewUser("Ann", True, "ann@example.org", ["a", "b", "a"], {"sshKeys": []})
    made = users.create_user(connection, new, "hash", NOW)

    assert made == users.get_user(connection, "Ann")
    assert (made.name, made.email, made.admin) == ("Ann", "ann@example.org", True)
    assert (made.virtual_clusters, made.extension) == (("a", "b"), {"sshKeys": []})
    assert (made.created, made.disabled, made.unix_uid) == (NOW, None, None)
    assert made.groups == ("default", "admingroup")


@pytest.mark.parametrize("name", ["ann", "Ann", "ANN"])
def test_a_name_is_given_once_however_it_is_written(connection: Connection, name: str) -> None:
    a_user(connection, "ann")
    with refused(409, "ConflictUserError", f"User name {name} already exists."):
        a_user(connection, name)


def test_a_user_is_found_however_the_name_is_written(connection: Connection) -> None:
    a_user(connection, "Ann")
    assert users.get_user(connection, "aNN").name == "Ann"


@pytest.mark.parametrize(
    "new",
    [
        NewUser("me"),
        NewUser("a b"),
        NewUser("ann", email="no"),
        NewUser("ann", extension={"a": float("inf")}),
        NewUser("ann", virtual_clusters=["a/b"]),
    ],
)
def test_what_breaks_a_rule_makes_no_user(connection: Connection, new: NewUser) -> None:
    with refused(400, "InvalidParametersError"):
        users.create_user(connection, new, "hash", NOW)
    assert users.list_users(connection) == []


def test_a_new_user_gets_virtual_clusters_that_there_are(connection: Connection) -> None:
    with refused(400, "NoVirtualClusterError", "Virtual cluster b is not found."):
        users.create_user(connection, NewUser("ann", virtual_clusters=["b"]), "h", NOW, {"a"})


def nobody(connection: Connection, name: str) -> dict[str, Any]:
    return {
        "get": lambda: users.get_user(connection, name),
        "update": lambda: users.update_user(connection, name, UserChanges(email="")),
        "delete": lambda: users.delete_user(connection, name),
        "disable": lambda: users.disable_user(connection, name, NOW),
        "enable": lambda: users.enable_user(connection, name),
        "password": lambda: users.set_password(connection, name, "h", NOW),
        "uid": lambda: users.set_unix_uid(connection, name, 5),
    }


@pytest.mark.parametrize("what", nobody(None, ""))  # type: ignore[arg-type]
@pytest.mark.parametrize("name", ["non_exist_user", "a\0b", "\ud800", "%", "' OR 1=1 --"])
def test_who_is_not_there_is_not_found(connection: Connection, what: str, name: str) -> None:
    a_user(connection, "ann")
    with refused(404, "NoUserError", f"User {name} is not found."):
        nobody(connection, name)[what]()


def test_a_list_is_by_name_with_everybodys_own_groups(connection: Connection) -> None:
    for name in ("cy", "Bob", "ann"):
        a_user(connection, name, admin=name == "ann")
    create_group(connection, Group("devs", "", "", {}), NOW)
    add_to_group(connection, "cy", "devs")

    listed = [(user.name, user.groups) for user in users.list_users(connection)]

    assert listed == [
        ("ann", ("default", "admingroup")),
        ("Bob", ("default",)),
        ("cy", ("default", "devs")),
    ]
    assert all(
        user == users.get_user(connection, user.name) for user in users.list_users(connection)
    )


@pytest.mark.parametrize(
    ("changes", "changed"),
    [
        (UserChanges(), {}),
        (UserChanges(email="b@c"), {"email": "b@c"}),
        (UserChanges(email=""), {"email": ""}),
        (UserChanges(virtual_clusters=[]), {"virtual_clusters": ()}),
        (UserChanges(extension={"b": 2}), {"extension": {"a": 1, "b": 2}}),
        (UserChanges(extension={"a": 2}), {"extension": {"a": 2}}),
        (UserChanges(extension={"b": 2}, replace_extension=True), {"extension": {"b": 2}}),
        (UserChanges(admin=True), {"admin": True, "groups": ("default", "admingroup")}),
    ],
)
def test_only_what_is_said_changes(
    connection: Connection, changes: UserChanges, changed: dict[str, Any]
) -> None:
    other = a_user(connection, "bob")
    before = a_user(connection, "ann", email="a@b", virtual_clusters=["vc"], extension={"a": 1})

    after = users.update_user(connection, "ann", changes)

    fields = before.__dataclass_fields__
    differing = {f: getattr(after, f) for f in fields if getattr(after, f) != getattr(before, f)}
    assert differing == changed
    assert users.get_user(connection, "bob") == other


@pytest.mark.parametrize("changes", [UserChanges(email="b@c"), UserChanges(admin=True)])
def test_the_last_admin_may_be_changed_in_all_else(
    connection: Connection, changes: UserChanges
) -> None:
    a_user(connection, "ann", admin=True)
    assert users.update_user(connection, "ann", changes).admin


def test_an_admin_is_not_removed(connection: Connection) -> None:
    for name in ("ann", "bob"):
        a_user(connection, name, admin=True)
    with refused(403, "RemoveAdminError", "Admin ann is not allowed to remove."):
        users.delete_user(connection, "ann")
    users.update_user(connection, "ann", UserChanges(admin=False))
    assert users.delete_user(connection, "ann").name == "ann"


@pytest.mark.parametrize("other", ["none", "plain", "disabled admin"])
def test_the_last_admin_who_may_come_in_stays_one(connection: Connection, other: str) -> None:
    a_user(connection, "ann", admin=True)
    if other != "none":
        a_user(connection, "bob", admin="admin" in other)
    if "disabled" in other:
        users.disable_user(connection, "bob", NOW)

    with refused(403, "ForbiddenUserError", "last admin and cannot be demoted; make another"):
        users.update_user(connection, "ann", UserChanges(admin=False, email="x@y"))
    with refused(403, "ForbiddenUserError", "last admin and cannot be disabled"):
        users.disable_user(connection, "ann", NOW)
    assert users.get_user(connection, "ann").admin


def test_one_of_two_admins_may_go(connection: Connection) -> None:
    for name in ("ann", "bob", "cy"):
        a_user(connection, name, admin=True)
    assert not users.update_user(connection, "ann", UserChanges(admin=False)).admin
    assert users.disable_user(connection, "bob", NOW).disabled == NOW
    with refused(403, "ForbiddenUserError"):
        users.update_user(connection, "cy", UserChanges(admin=False))


def test_who_goes_leaves_nothing_behind(connection: Connection) -> None:
    ann, bob = a_user(connection, "ann"), a_user(connection, "bob")
    create_group(connection, Group("devs", "", "", {}), NOW)
    for user in (ann, bob):
        add_to_group(connection, user.name, "devs")
        issue(connection, user.id, Kind.APPLICATION, NOW)

    users.delete_user(connection, "ann")

    for column in (USERS.c.id, TOKENS.c.user_id, MEMBERSHIPS.c.user_id):
        assert connection.execute(select(column)).scalars().all() == [bob.id]


def test_a_new_user_of_an_old_name_is_somebody_else(connection: Connection) -> None:
    old = a_user(connection, "ann")
    token = issue(connection, old.id, Kind.APPLICATION, NOW)
    users.delete_user(connection, "ann")

    assert a_user(connection, "ann").id != old.id
    assert find_token(connection, token.value, NOW) is None


def test_a_time_of_disabling_is_the_first(connection: Connection) -> None:
    a_user(connection, "ann")
    users.disable_user(connection, "ann", NOW)
    assert users.disable_user(connection, "ann", NOW + 5).disabled == NOW
    assert users.enable_user(connection, "ann").disabled is None


def test_a_password_is_changed_only_from_what_was_looked_at(connection: Connection) -> None:
    a_user(connection, "ann")
    assert users.set_password(connection, "ann", "second", NOW, replacing="no hash")
    assert not users.set_password(connection, "ann", "third", NOW, replacing="no hash")
    stored = users.stored_password(connection, "ann")
    assert stored is not None
    assert stored.password == "second"


def test_a_change_that_does_not_happen_ends_no_sign_in(connection: Connection) -> None:
    ann = a_user(connection, "ann")
    token = issue(connection, ann.id, Kind.SIGN_IN, NOW)
    users.set_password(connection, "ann", "third", NOW, replacing="another")
    assert find_token(connection, token.value, NOW) is not None


def test_no_two_users_run_as_one(connection: Connection) -> None:
    a_user(connection, "ann")
    a_user(connection, "bob")
    assert users.set_unix_uid(connection, "ann", 5000).unix_uid == 5000
    assert users.set_unix_uid(connection, "ann", 5000).unix_uid == 5000
    with refused(400, "InvalidParametersError", "5000 is user ann's"):
        users.set_unix_uid(connection, "bob", 5000)
    users.set_unix_uid(connection, "ann", None)
    assert users.set_unix_uid(connection, "bob", 5000).unix_uid == 5000


def test_a_name_whose_jobs_are_on_record_is_given_to_nobody_else(connection: Connection) -> None:
    """Records know owners by name."""
    job = NewJob(
        id="j", username="Ann", name="first", engine="local", namespace="n", engine_name="first",
        submitted_at=NOW,
    )  # fmt: skip
    a_user(connection, "Ann")
    begin_submit(connection, job)
    users.delete_user(connection, "Ann")
    with refused(409, "ConflictUserError", "delete those jobs first"):
        a_user(connection, "ann")
    delete_record(connection, "j", NOW)
    assert a_user(connection, "ann").name == "ann"
