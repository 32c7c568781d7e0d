"""What clients send about accounts: what is misspelt in it is told, and changes nothing."""

from __future__ import annotations

from typing import Any

import pytest

from regatta.server.openpai.account_bodies import BODIES
from tests.server.accounts.people import PASSWORD
from tests.server.team.serving import TeamServer

V1, V2, SESSION = "/api/v1", "/api/v2", "/regatta/v1/session"
ANN = {"username": "ann"}
NEW = {"username": "eve", "password": PASSWORD}
#: Method, path, body, and the whole refusal.
MISSPELT: list[tuple[str, str, Any, str]] = [
    ("PUT", f"{V2}/users/me", {"data": {**ANN, "oldPassword": "x", "password": "y"}, "patch": True},
     "data.password: unknown field; did you mean newPassword? Known here: username, email, "
     "newPassword, oldPassword and extension"),
    ("PUT", f"{V2}/users", {"data": {**ANN, "passwrod": "zz"}, "patch": True},
     "data.passwrod: unknown field; did you mean password? Known here: username, email, "
     "virtualCluster, admin, password and extension"),
    ("PUT", f"{V2}/users", {"data": ANN, "pacth": True},
     "pacth: unknown field; did you mean patch? Known here: data and patch"),
    ("POST", f"{V2}/user", {**NEW, "admni": True},
     "admni: unknown field; did you mean admin? Known here: username, password, admin, email, "
     "virtualCluster and extension"),
    ("POST", f"{V2}/users", {**NEW, "sudo": True},
     "sudo: unknown field; Known here: username, password, admin, email, virtualCluster and "
     "extension"),
    ("PUT", f"{V2}/users/ann/email", {"email": "", "mail": ""},
     "mail: unknown field; Known here: email"),
    ("POST", f"{V2}/groups", {"groupname": "readers", "descripton": "all"},
     "descripton: unknown field; did you mean description? Known here: groupname, description, "
     "externalName and extension"),
    ("PUT", f"{V2}/groups", {"data": {"groupname": "default", "externalname": "x"}},
     "data.externalname: unknown field; did you mean externalName? Known here: groupname, "
     "description, externalName and extension"),
    ("PUT", f"{V1}/user", {**NEW, "Admin": True},
     "Admin: unknown field; did you mean admin? Known here: username, password, admin and modify"),
    ("POST", f"{V1}/token", {**NEW, "expires": 60},
     "expires: unknown field; Known here: username, password and expiration"),
]  # fmt: skip


@pytest.mark.parametrize(("method", "path", "body", "said"), MISSPELT)
def test_a_field_that_nobody_knows_is_refused_by_name(
    shared: TeamServer, method: str, path: str, body: Any, said: str
) -> None:
    admin = shared.admin_token("ann")
    answer = shared.ask(method, path, admin, body=body)
    assert answer.code == (400, "InvalidParametersError")
    assert answer.json["message"] == said
    assert shared.ask("GET", f"{V2}/users/eve", admin).code == (404, "NoUserError")


def test_a_form_and_a_browsers_session_are_read_as_closely(shared: TeamServer) -> None:
    sent = {**NEW, "user_name": "eve"}
    form = shared.ask("POST", f"{V2}/authn/basic/login", form=sent)
    headers = {"Origin": shared.url, "X-Regatta-Request": "1"}
    session = shared.ask("POST", SESSION, body=sent, headers=headers)
    for answer in (form, session):
        assert answer.status == 400
        assert answer.json["message"].startswith("user_name: unknown field; ")


def test_what_is_said_of_a_field_is_one_line_that_can_be_read(shared: TeamServer) -> None:
    body = {**NEW, "a\u202eb`\n" + 500 * "x": 1}
    said = shared.ask("POST", f"{V2}/users", shared.admin_token(), body=body).json["message"]
    assert said.startswith('"a\\u202eb`\\n')
    assert "\n" not in said
    assert len(said) < 200


def test_an_extension_may_hold_what_its_client_likes(shared: TeamServer) -> None:
    body = {"username": "holds", "password": PASSWORD, "extension": {"emial": {"admni": 1}}}
    assert shared.ask("POST", f"{V2}/users", shared.admin_token(), body=body).status == 201


def test_the_description_says_that_there_are_no_other_fields(shared: TeamServer) -> None:
    described = shared.ask("GET", "/regatta/v1/openapi.json", shared.admin_token()).json
    schemas = described["components"]["schemas"]
    for name in (*(kind.__name__ for kind in BODIES), "UserData", "OwnData", "SessionBody"):
        assert schemas[name]["additionalProperties"] is False, name


@pytest.mark.parametrize(
    ("method", "path", "most"),
    [
        ("PUT", f"{V2}/users/me", "128 KiB"),
        ("POST", "/regatta/v1/tokens", "128 KiB"),
        ("POST", f"{V2}/jobs", "4 MiB"),
        ("PUT", f"{V1}/user/ann/jobs/first", "4 MiB"),
        ("POST", "/regatta/v1/jobs", "4 MiB"),
    ],
)
def test_a_body_is_no_longer_than_what_it_brings_can_be(
    shared: TeamServer, method: str, path: str, most: str
) -> None:
    """It is read in one go, and others wait for that."""
    number, unit = most.split()
    size = int(number) * {"KiB": 2**10, "MiB": 2**20}[unit]
    refused = shared.ask(method, path, shared.token("ann"), text=b"[" * (size + 1))
    assert refused.status == 413
    assert f"{most} is the most" in refused.json["message"]
    assert shared.ask(method, path, shared.token("ann"), text=b"[" * size).status != 413
