"""What `openapi.json` promises of the routes about accounts is what comes."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest

from tests.server.accounts.people import PASSWORD
from tests.server.team.serving import TeamServer

#: Later cases find what earlier ones made.
pytestmark = pytest.mark.xdist_group("declared accounts")

V2, OURS = "/api/v2", "/regatta/v1"
NEW = {"username": "declared", "password": PASSWORD}
#: Method, path as declared, path as asked, status, body. Later ones find what earlier ones made.
CASES: list[tuple[str, str, str, int, Any]] = [
    ("GET", "/api/v1", "/api/v1", 200, None),
    ("GET", f"{V2}/info", f"{V2}/info", 200, None),
    ("GET", f"{V2}/authn/info", f"{V2}/authn/info", 200, None),
    ("POST", f"{V2}/users", f"{V2}/users", 201, NEW),
    ("POST", f"{V2}/users", f"{V2}/users", 409, NEW),
    ("POST", f"{V2}/users", f"{V2}/users", 400, {}),
    ("POST", f"{V2}/authn/basic/login", f"{V2}/authn/basic/login", 200, NEW),
    ("POST", "/api/v1/token", "/api/v1/token", 200, NEW),
    ("POST", "/api/v1/token", "/api/v1/token", 400, {**NEW, "password": "not this one"}),
    ("GET", f"{V2}/users", f"{V2}/users", 200, None),
    ("GET", f"{V2}/user/{{user}}", f"{V2}/user/declared", 200, None),
    ("GET", f"{V2}/user/{{user}}", f"{V2}/user/undeclared", 404, None),
    ("POST", f"{V2}/groups", f"{V2}/groups", 201, {"groupname": "declared"}),
    ("GET", f"{V2}/groups", f"{V2}/groups", 200, None),
    ("GET", f"{V2}/groups/{{group}}", f"{V2}/groups/declared", 200, None),
    ("PUT", f"{V2}/users/{{user}}/group", f"{V2}/users/declared/group", 201,
     {"groupname": "declared"}),
    ("GET", f"{V2}/groups/{{group}}/userlist", f"{V2}/groups/declared/userlist", 200, None),
    ("DELETE", f"{V2}/groups/{{group}}", f"{V2}/groups/declared", 201, None),
    ("DELETE", f"{V2}/users/{{user}}", f"{V2}/users/declared", 200, None),
    ("GET", f"{V2}/tokens", f"{V2}/tokens", 200, None),
    ("GET", f"{V2}/tokens/check", f"{V2}/tokens/check", 200, None),
    ("POST", f"{V2}/tokens/application", f"{V2}/tokens/application", 200, {}),
    ("DELETE", f"{V2}/tokens/{{token}}", f"{V2}/tokens/none", 403, None),
    ("GET", f"{OURS}/whoami", f"{OURS}/whoami", 200, None),
    ("GET", f"{OURS}/tokens", f"{OURS}/tokens", 200, None),
    ("POST", f"{OURS}/tokens", f"{OURS}/tokens", 201, None),
    ("POST", f"{OURS}/session", f"{OURS}/session", 403, NEW),
    ("GET", f"{OURS}/audit", f"{OURS}/audit", 200, None),
    ("GET", f"{OURS}/audit", f"{OURS}/audit?limit=0", 400, None),
]  # fmt: skip


@pytest.fixture(scope="module")
def described(shared: TeamServer) -> Any:
    return shared.ask("GET", f"{OURS}/openapi.json", shared.admin_token()).json


@pytest.mark.parametrize(("method", "declared", "asked", "status", "body"), CASES)
def test_an_answer_is_of_the_declared_status_and_shape(
    shared: TeamServer,
    described: Any,
    method: str,
    declared: str,
    asked: str,
    status: int,
    body: Any,
) -> None:
    answer = shared.ask(method, asked, shared.admin_token(), body=body)
    assert answer.status == status, answer.body
    told = described["paths"][declared][method.lower()]["responses"][str(status)]
    schema = told["content"]["application/json"]["schema"]
    whole = {**schema, "components": described["components"]}
    jsonschema_rs.validator_for(whole).validate(answer.json)


def test_every_reference_leads_to_a_schema(described: Any) -> None:
    def references(value: Any) -> set[str]:
        if isinstance(value, dict):
            own = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
            return own.union(*map(references, value.values()))
        return set().union(*map(references, value)) if isinstance(value, list) else set()

    named = {f"#/components/schemas/{name}" for name in described["components"]["schemas"]}
    found = references(described["paths"])
    assert len(found) > 30
    assert found - named == set()
