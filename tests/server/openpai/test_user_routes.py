"""Users, as OpenPAI's clients ask for them, make them and change them."""

from __future__ import annotations

from typing import Any

import pytest

from regatta.server.accounts.tokens import Kind
from tests.server.accounts.people import PASSWORD
from tests.server.openpai.test_sign_in_routes import sign_in
from tests.server.team.serving import TeamServer

USERS = "/api/v2/users"
NOT_ADMIN = "Non-admin is not allow to do this operation."
NO_APPLICATIONS = "Applications are not allowed to do this operation."


def made(server: TeamServer, name: str, **more: Any) -> str:
    """The name of a user that an admin made."""
    body = {"username": name, "password": PASSWORD, **more}
    answer = server.ask("POST", USERS, server.admin_token(), body=body)
    assert (answer.status, answer.json) == (201, {"message": "User is created successfully"})
    return name


def user(server: TeamServer, name: str) -> Any:
    return server.ask("GET", f"{USERS}/{name}", server.admin_token()).json


def test_a_new_user_is_as_was_sent_and_can_sign_in(on_both: TeamServer) -> None:
    extension = {"sshKeys": [{"title": "a\u0000b", "value": "ssh-rsa"}]}
    made(on_both, "First.User-1", email="first@example.org", extension=extension)
    assert user(on_both, "first.user-1") == {
        "username": "First.User-1",
        "email": "first@example.org",
        "grouplist": ["default"],
        "admin": False,
        "virtualCluster": ["default"],
        "storageConfig": [],
        "extension": extension,
    }
    assert sign_in(on_both, "first.user-1").json["user"] == "First.User-1"


@pytest.mark.parametrize("prefix", ["/api/v2/user", "/rest-server/api/v2/users/"])
def test_both_spellings_of_the_path_answer(shared: TeamServer, prefix: str) -> None:
    admin = shared.admin_token()
    names = [one["username"] for one in shared.ask("GET", prefix, admin).json]
    assert "boss" in names


@pytest.mark.parametrize(
    ("sent", "code", "said"),
    [
        ({"username": "taken"}, (409, "ConflictUserError"), "User name taken already exists."),
        ({"username": "TAKEN"}, (409, "ConflictUserError"), "already exists."),
        ({"username": "a b"}, (400, "InvalidParametersError"), "username"),
        ({"username": "me"}, (400, "InvalidParametersError"), "system keeps"),
        ({"password": "12345"}, (400, "InvalidParametersError"), "at least 6"),
        ({"password": 7}, (400, "InvalidParametersError"), "password: expected `str`"),
        ({"email": "no address"}, (400, "InvalidParametersError"), "email"),
        ({"virtualCluster": ["none"]}, (400, "NoVirtualClusterError"), "cluster none is not"),
        ({"extension": []}, (400, "InvalidParametersError"), "extension: expected `object`"),
    ],
)
def test_a_user_that_cannot_be_made_is_refused_by_field(
    shared: TeamServer, sent: dict[str, Any], code: tuple[int, str], said: str
) -> None:
    shared.token("taken")
    body = {"username": "fresh", "password": PASSWORD, **sent}
    answer = shared.ask("POST", USERS, shared.admin_token(), body=body)
    assert answer.code == code
    assert said in answer.json["message"]


def test_members_see_themselves_alone_and_not_whether_there_are_others(
    shared: TeamServer,
) -> None:
    mine = shared.token("seeing")
    shared.token("unseen")
    for name in ("me", "seeing", "SEEING"):
        assert shared.ask("GET", f"{USERS}/{name}", mine).json["username"] == "seeing"
    answers = [shared.ask("GET", f"{USERS}/{name}", mine) for name in ("unseen", "notthere")]
    assert {answer.body for answer in answers} == {answers[0].body}
    assert answers[0].code == (403, "ForbiddenUserError")
    assert shared.ask("GET", USERS, mine).json["message"] == NOT_ADMIN
    assert shared.ask("GET", f"{USERS}/notthere", shared.admin_token()).json == {
        "code": "NoUserError",
        "message": "User notthere is not found.",
    }


WRITES = [
    ("POST", USERS, {"username": "n", "password": PASSWORD}),
    ("PUT", USERS, {"data": {"username": "other", "email": "x@example.org"}, "patch": True}),
    ("DELETE", f"{USERS}/other", None),
    ("PUT", f"{USERS}/other/group", {"groupname": "admingroup"}),
    ("DELETE", f"{USERS}/other/group", {"groupname": "default"}),
    ("PUT", f"{USERS}/other/grouplist", {"grouplist": ["admingroup"]}),
    ("PUT", f"{USERS}/other/password", {"newPassword": "a new password"}),
    ("PUT", f"{USERS}/other/email", {"email": "x@example.org"}),
    ("PUT", f"{USERS}/plain/admin", {"admin": True}),
    ("PUT", f"{USERS}/plain/virtualcluster", {"virtualCluster": ["default"]}),
    ("PUT", f"{USERS}/other/extension", {"extension": {}}),
    ("PUT", "/api/v1/user", {"username": "n", "password": PASSWORD}),
    ("DELETE", "/api/v1/user", {"username": "other"}),
    ("PUT", "/api/v1/user/plain/virtualClusters", {"virtualClusters": "default"}),
]


@pytest.mark.parametrize(("method", "path", "body"), WRITES)
def test_only_admins_change_others_and_applications_change_nobody(
    shared: TeamServer, method: str, path: str, body: Any
) -> None:
    mine = shared.token("plain")
    shared.token("other")
    refused = shared.ask(method, path, mine, body=body)
    assert refused.code == (403, "ForbiddenUserError")
    assert refused.json["message"] == NOT_ADMIN
    shared.admin_token()
    program = shared.token("boss", Kind.APPLICATION)
    refused = shared.ask(method, path, program, body=body)
    assert refused.json["message"] == NO_APPLICATIONS
    assert shared.ask(method, path, body=body).code == (401, "UnauthorizedUserError")
    assert user(shared, "other")["grouplist"] == ["default"]


def test_an_update_leaves_alone_what_it_does_not_name(on_both: TeamServer) -> None:
    made(on_both, "patched", email="a@example.org", extension={"one": 1, "two": 2})
    admin = on_both.admin_token()

    def update(patch: bool, **data: Any) -> Any:
        body = {"data": {"username": "patched", **data}, "patch": patch}
        answer = on_both.ask("PUT", USERS, admin, body=body)
        assert answer.status == 201, answer.body
        return user(on_both, "patched")

    assert update(True, extension={"two": 3})["extension"] == {"one": 1, "two": 3}
    replaced = update(False, extension={"four": 4}, email="b@example.org")
    assert (replaced["extension"], replaced["email"]) == ({"four": 4}, "b@example.org")
    assert update(True, admin=True)["grouplist"] == ["default", "admingroup"]


def test_an_update_is_whole_or_not_at_all(on_both: TeamServer) -> None:
    made(on_both, "whole")
    data = {"username": "whole", "password": "another one", "virtualCluster": ["none"]}
    answer = on_both.ask("PUT", USERS, on_both.admin_token(), body={"data": data, "patch": True})
    assert answer.code == (400, "NoVirtualClusterError")
    assert sign_in(on_both, "whole").status == 200


def test_an_update_of_nobody_is_404(shared: TeamServer) -> None:
    for data in ({"email": ""}, {"password": "a new password"}):
        body = {"data": {"username": "nobody.here", **data}, "patch": True}
        answer = shared.ask("PUT", USERS, shared.admin_token(), body=body)
        assert answer.code == (404, "NoUserError")


def test_one_changes_ones_own_password_and_the_token_that_did_lives_on(
    on_both: TeamServer,
) -> None:
    made(on_both, "changer")
    mine, elsewhere = on_both.token("changer"), on_both.token("changer")
    program = on_both.token("changer", Kind.APPLICATION)

    def change(old: str, new: str) -> Any:
        data = {"username": "changer", "oldPassword": old, "newPassword": new}
        data["email"] = "new@example.org"
        return on_both.ask("PUT", f"{USERS}/me", mine, body={"data": data, "patch": False})

    wrong = change("not this one", "a new password")
    assert wrong.code == (403, "ForbiddenUserError")
    assert wrong.json["message"] == "Pls input the correct password."
    assert user(on_both, "changer")["email"] == ""

    assert change(PASSWORD, "a new password").status == 201
    assert user(on_both, "changer")["email"] == "new@example.org"
    assert sign_in(on_both, "changer").status == 400
    assert sign_in(on_both, "changer", "a new password").status == 200
    lives = [on_both.ask("GET", "/api/v2/tokens/check", t).status for t in (mine, elsewhere)]
    assert lives == [200, 401]
    assert on_both.ask("GET", "/api/v2/tokens/check", program).status == 200


def test_a_new_password_of_ones_own_needs_the_old_one(shared: TeamServer) -> None:
    data = {"username": "boss", "newPassword": "a new password"}
    answer = shared.ask("PUT", f"{USERS}/me", shared.admin_token(), body={"data": data})
    assert answer.code == (400, "InvalidParametersError")
    assert "oldPassword is missing" in answer.json["message"]


def test_me_is_nobody_else(shared: TeamServer) -> None:
    body = {"data": {"username": "boss", "email": "x@example.org"}, "patch": True}
    answer = shared.ask("PUT", f"{USERS}/me", shared.token("selfish"), body=body)
    assert answer.code == (403, "ForbiddenUserError")


def test_old_clients_change_a_field_at_a_time(on_both: TeamServer) -> None:
    made(on_both, "legacy")
    admin, mine = on_both.admin_token(), on_both.token("legacy")

    def put(field: str, token: str, **body: Any) -> int:
        return on_both.ask("PUT", f"{USERS}/legacy/{field}", token, body=body).status

    assert put("email", mine, email="old@example.org") == 201
    assert put("extension", mine, extension={"a": 1}) == 201
    assert put("password", mine, oldPassword="not this one", newPassword="new one") == 403
    assert put("password", mine, oldPassword=PASSWORD, newPassword="new one") == 201
    assert put("password", admin, newPassword="newer one") == 201
    assert put("virtualcluster", admin, virtualCluster=["default"]) == 201
    assert put("admin", admin, admin=True) == 201
    found = user(on_both, "legacy")
    assert (found["email"], found["extension"], found["admin"]) == (
        "old@example.org",
        {"a": 1},
        True,
    )
    assert sign_in(on_both, "legacy", "newer one").json["admin"] is True
    answer = on_both.ask(
        "PUT", f"{USERS}/legacy/virtualcluster", admin, body={"virtualCluster": []}
    )
    assert answer.json["message"] == "Admin's virtual clusters cannot be updated."


def test_older_ones_have_their_own_paths(on_both: TeamServer) -> None:
    admin, path = on_both.admin_token(), "/api/v1/user"
    new = {"username": "ancient", "password": PASSWORD, "admin": False, "modify": False}
    assert on_both.ask("PUT", path, admin, body=new).status == 201
    assert on_both.ask("PUT", path, admin, body=new).code == (409, "ConflictUserError")
    other = {**new, "password": "another one", "modify": True}
    assert on_both.ask("PUT", path, admin, body=other).status == 201
    token = sign_in(on_both, "ancient", "another one").json["token"]
    assert on_both.ask("GET", f"{path}/ancient", token).json["username"] == "ancient"
    granted = {"virtualClusters": "default,"}
    assert on_both.ask("PUT", f"{path}/ancient/virtualClusters", admin, body=granted).status == 201
    assert on_both.ask("DELETE", path, admin, body={"username": "ancient"}).status == 201
    assert on_both.ask("GET", f"{path}/ancient", admin).code == (404, "NoUserError")


def test_an_older_ones_new_password_makes_and_ends_no_admin(on_both: TeamServer) -> None:
    boss, path = on_both.admin_token(), "/api/v1/user"

    def change(**more: object) -> bool:
        body = {"username": "second", "modify": True, **more}
        assert on_both.ask("PUT", path, boss, body=body).status == 201
        admin: bool = on_both.ask("GET", f"{path}/second", boss).json["admin"]
        return admin

    new = {"username": "second", "password": PASSWORD}
    assert on_both.ask("PUT", path, boss, body=new).status == 201
    assert not change(password="another one")
    assert change(admin=True)
    assert change(password="a third one")
    assert not change(password="a fourth one", admin=False)


def test_a_removed_user_is_gone_with_every_token(on_both: TeamServer) -> None:
    made(on_both, "leaving")
    token, admin = on_both.token("leaving"), on_both.admin_token()
    answer = on_both.ask("DELETE", f"{USERS}/leaving", admin)
    assert (answer.status, answer.json) == (200, {"message": "user is removed successfully"})
    assert on_both.ask("GET", f"{USERS}/me", token).status == 401
    assert on_both.ask("DELETE", f"{USERS}/leaving", admin).code == (404, "NoUserError")


def test_an_admin_is_not_removed_and_the_last_one_not_demoted(server: TeamServer) -> None:
    admin = server.admin_token()
    assert server.ask("DELETE", f"{USERS}/boss", admin).code == (403, "RemoveAdminError")
    answer = server.ask("PUT", f"{USERS}/boss/admin", admin, body={"admin": False})
    assert answer.code == (403, "ForbiddenUserError")
    assert "last admin" in answer.json["message"]


def test_groups_come_and_go(on_both: TeamServer) -> None:
    made(on_both, "joiner")
    admin = on_both.admin_token()
    on_both.ask("POST", "/api/v2/groups", admin, body={"groupname": "crew"})
    path = f"{USERS}/joiner"
    joined = on_both.ask("PUT", f"{path}/group/", admin, body={"groupname": "crew"})
    assert joined.json == {"message": "User joiner is added into group crew"}
    assert joined.status == 201
    assert user(on_both, "joiner")["grouplist"] == ["default", "crew"]
    left = on_both.ask("DELETE", f"{path}/group/", admin, body={"groupname": "crew"})
    assert (left.status, left.json["message"]) == (201, "User joiner is removed from group crew")
    every = {"grouplist": ["default", "crew", "admingroup"]}
    assert on_both.ask("PUT", f"{path}/grouplist/", admin, body=every).status == 201
    assert user(on_both, "joiner")["admin"] is True
    unknown = on_both.ask("PUT", f"{path}/group", admin, body={"groupname": "none"})
    assert unknown.code == (404, "NoGroupError")
