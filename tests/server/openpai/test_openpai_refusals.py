"""Refusals in the words of whoever asked: OpenPAI's own under `/api`, elsewhere with what to do."""

from __future__ import annotations

import pytest

from regatta.server.accounts.tokens import Kind
from regatta.server.openpai_errors import ADMINS_ONLY, GUEST, INVALID_TOKEN, NO_APPLICATIONS
from tests.server.team.serving import TeamServer

SIGN_IN = ("`regatta login URL`", "`POST /api/v2/authn/basic/login`")


@pytest.mark.parametrize("path", ["/regatta/v1/jobs", "/regatta/v1/whoami", "/", "/nowhere"])
def test_who_is_not_known_reads_how_to_sign_in(shared: TeamServer, path: str) -> None:
    for token, says in (
        (None, ("nobody is signed in", "`Authorization: Bearer TOKEN`")),
        ("rgt_0123456789abcdef_gone", ("revoked, has expired, or is another server's",)),
    ):
        refused = shared.ask("GET", path, token)
        assert refused.code == (401, "Unauthorized")
        for words in (*says, *SIGN_IN):
            assert words in refused.json["message"]


def test_who_is_no_admin_reads_whom_to_ask(shared: TeamServer) -> None:
    refused = shared.ask("GET", "/regatta/v1/audit", shared.token("ann"))
    assert refused.code == (403, "NotAllowed")
    assert "ask an admin" in refused.json["message"]


def test_an_application_reads_which_token_would_do(shared: TeamServer) -> None:
    refused = shared.ask("POST", "/regatta/v1/tokens", shared.token("ann", Kind.APPLICATION))
    assert refused.code == (403, "NotAllowed")
    for words in ("an application's token", *SIGN_IN):
        assert words in refused.json["message"]


def test_openpais_clients_read_its_own_words(shared: TeamServer) -> None:
    for token, path, said in (
        (None, "/api/v2/users", GUEST),
        ("rgt_0123456789abcdef_gone", "/rest-server/api/v2/users", INVALID_TOKEN),
        (shared.token("ann"), "/api/v2/users", ADMINS_ONLY),
        (shared.token("ann", Kind.APPLICATION), "/api/v2/tokens", NO_APPLICATIONS),
    ):
        assert shared.ask("GET", path, token).json["message"] == said
