"""One's own tokens, as OpenPAI's clients list, make and revoke them."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from regatta.server.accounts.tokens import Kind
from tests.server.team.serving import TeamServer

TOKENS = "/api/v2/tokens"


def handle_of(token: str) -> str:
    return token.split("_")[1]


def test_tokens_are_listed_by_their_handles_and_nobody_elses(shared: TeamServer) -> None:
    mine, program = shared.token("lister"), shared.token("lister", Kind.APPLICATION)
    shared.token("another")
    listed = shared.ask("GET", TOKENS, mine).json
    assert set(listed["tokens"]) == {handle_of(mine), handle_of(program)}


def test_an_application_token_has_no_end_and_is_for_jobs_alone(shared: TeamServer) -> None:
    mine = shared.token("maker")
    made = shared.ask("POST", TOKENS + "/application", mine, body={})
    assert (made.status, made.json["application"]) == (200, True)
    program = made.json["token"]

    check = shared.ask("GET", TOKENS + "/check", program).json
    assert (check["username"], check["application"]) == ("maker", True)
    assert "exp" not in check
    assert shared.ask("GET", "/regatta/v1/jobs", program).status == 200
    for method, path in (
        ("GET", TOKENS),
        ("POST", TOKENS + "/application"),
        ("DELETE", f"{TOKENS}/{handle_of(program)}"),
    ):
        answer = shared.ask(method, path, program)
        assert answer.code == (403, "ForbiddenUserError")
        assert answer.json["message"] == "Applications are not allowed to do this operation."


@pytest.mark.parametrize("by", ["value", "handle"])
def test_a_token_is_revoked_by_its_value_and_by_its_handle(shared: TeamServer, by: str) -> None:
    mine, other = shared.token("revoker"), shared.token("revoker")
    named = other if by == "value" else handle_of(other)
    answer = shared.ask("DELETE", f"{TOKENS}/{quote(named)}", mine)
    assert (answer.status, answer.json) == (200, {"message": "revoke successfully"})
    assert shared.ask("GET", TOKENS, other).status == 401
    again = shared.ask("DELETE", f"{TOKENS}/{quote(named)}", mine)
    assert again.code == (403, "ForbiddenUserError")


def test_nobody_revokes_anothers_token_and_admins_do_not_either(shared: TeamServer) -> None:
    theirs = shared.token("victim")
    for token in (shared.token("thief"), shared.admin_token("overseer")):
        for named in (theirs, handle_of(theirs)):
            assert shared.ask("DELETE", f"{TOKENS}/{named}", token).status == 403
    assert shared.ask("GET", TOKENS, theirs).status == 200


def test_the_audit_has_the_handle_of_a_revoked_token_and_never_its_value(
    server: TeamServer,
) -> None:
    mine, other = server.token("ann"), server.token("ann")
    server.ask("DELETE", f"{TOKENS}/{other}", mine)
    entry = server.audited(1)[0]
    assert (entry.who, entry.status) == ("ann", 200)
    assert handle_of(other) in entry.what
    assert other not in entry.what
    assert other[-20:] not in entry.what
