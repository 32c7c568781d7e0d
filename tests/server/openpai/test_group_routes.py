"""Groups, as OpenPAI's clients ask for them, make them and change them."""

from __future__ import annotations

from typing import Any

import pytest

from regatta.server.accounts.tokens import Kind
from tests.server.team.serving import TeamServer

GROUPS = "/api/v2/groups"


def test_a_group_is_made_changed_and_removed(on_both: TeamServer) -> None:
    admin = on_both.admin_token()
    new = {
        "groupname": "vision",
        "description": "who sees",
        "externalName": "v",
        "extension": {"acls": {"virtualClusters": ["default"]}},
    }
    answer = on_both.ask("POST", GROUPS, admin, body=new)
    assert (answer.status, answer.json) == (201, {"message": "group is created successfully"})
    assert on_both.ask("GET", f"{GROUPS}/Vision", admin).json == new
    assert on_both.ask("POST", GROUPS, admin, body=new).code == (409, "ConflictGroupError")

    changed = {"data": {"groupname": "vision", "description": "again"}, "patch": True}
    answer = on_both.ask("PUT", GROUPS, admin, body=changed)
    assert (answer.status, answer.json["message"]) == (201, "update group vision successfully.")
    assert on_both.ask("GET", f"{GROUPS}/vision", admin).json == {**new, "description": "again"}

    removed = on_both.ask("DELETE", f"{GROUPS}/vision", admin)
    assert (removed.status, removed.json) == (201, {"message": "group is removed successfully"})
    assert on_both.ask("GET", f"{GROUPS}/vision", admin).json == {
        "code": "NoGroupError",
        "message": "Group vision is not found.",
    }


def test_the_systems_own_groups_stay(on_both: TeamServer) -> None:
    admin = on_both.admin_token()
    listed = on_both.ask("GET", "/api/v2/group/", admin).json
    assert {"default", "admingroup"} <= {group["groupname"] for group in listed}
    for name in ("default", "admingroup"):
        assert on_both.ask("DELETE", f"{GROUPS}/{name}", admin).code == (403, "ForbiddenKeyError")


def test_who_is_in_a_group_is_told_to_admins(on_both: TeamServer) -> None:
    on_both.token("inside")
    admin = on_both.admin_token()
    members = on_both.ask("GET", f"{GROUPS}/default/userlist", admin).json
    assert {"username": "inside", "clusterAdmin": False} in members
    assert {"username": "boss", "clusterAdmin": True} in members
    none = on_both.ask("GET", f"{GROUPS}/none/userlist", admin)
    assert none.code == (404, "NoGroupError")


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", GROUPS, {"groupname": "mine"}),
        ("PUT", GROUPS, {"data": {"groupname": "default"}}),
        ("DELETE", f"{GROUPS}/default", None),
        ("GET", f"{GROUPS}/default/userlist", None),
    ],
)
def test_the_rest_is_for_admins_alone(
    shared: TeamServer, method: str, path: str, body: Any
) -> None:
    answer = shared.ask(method, path, shared.token("member"), body=body)
    assert answer.code == (403, "ForbiddenUserError")
    assert answer.json["message"] == "Non-admin is not allow to do this operation."


def test_members_read_groups_and_applications_do_not(shared: TeamServer) -> None:
    for path in (GROUPS, f"{GROUPS}/default"):
        assert shared.ask("GET", path, shared.token("reader")).status == 200
        answer = shared.ask("GET", path, shared.token("reader", Kind.APPLICATION))
        assert answer.json["message"] == "Applications are not allowed to do this operation."


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ({}, "groupname"),
        ({"groupname": "a-b"}, "groupname"),
        ({"groupname": "g", "extension": {"acls": 7}}, "extension.acls"),
        ({"groupname": "g", "extension": {"acls": {"admin": True}}}, "admingroup makes admins"),
    ],
)
def test_a_group_that_cannot_be_made_is_refused_by_field(
    shared: TeamServer, sent: Any, said: str
) -> None:
    answer = shared.ask("POST", GROUPS, shared.admin_token(), body=sent)
    assert answer.code == (400, "InvalidParametersError")
    assert said in answer.json["message"]
