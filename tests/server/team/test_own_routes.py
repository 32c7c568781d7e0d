"""Who one is, a browser's session, and one's own tokens."""

from __future__ import annotations

from pathlib import Path

import pytest

from regatta.server.accounts.tokens import Kind
from regatta.server.openpai_errors import WRONG_SIGN_IN
from regatta.server.origins import Ours
from tests.server.accounts.people import PASSWORD
from tests.server.team.serving import Answer, TeamServer, a_team_server

SESSION, TOKENS, WHOAMI = "/regatta/v1/session", "/regatta/v1/tokens", "/regatta/v1/whoami"


def browser(server: TeamServer, method: str, path: str, cookie: str = "", **more: str) -> Answer:
    """As a page of the server's own asks."""
    headers = {"Origin": server.url, "X-Regatta-Request": "1", **more}
    if cookie:
        headers["Cookie"] = cookie
    body = {"username": "ann", "password": PASSWORD} if method == "POST" else None
    return server.ask(method, path, body=body, headers=headers)


def cookie_of(answer: Answer) -> str:
    return answer.headers["Set-Cookie"].partition(";")[0]


def test_anybody_with_a_token_learns_who_one_is(shared: TeamServer) -> None:
    shared.token("Wanda.B")
    for kind in (Kind.SIGN_IN, Kind.APPLICATION):
        told = shared.ask("GET", WHOAMI, shared.token("wanda.b", kind)).json
        assert (told["name"], told["admin"], told["groups"]) == ("Wanda.B", False, ["default"])
        assert (told["virtualClusters"], told["kind"]) == (["default"], kind)
        assert (told["expires"] is None) == (kind is Kind.APPLICATION)
        assert told["namespace"].startswith("user-wanda")
    assert shared.ask("GET", WHOAMI).code == (401, "Unauthorized")


def test_a_browser_signs_in_reads_writes_and_signs_out(server: TeamServer) -> None:
    server.add_user("ann")
    begun = browser(server, "POST", SESSION)
    assert (begun.status, begun.json["name"], begun.json["kind"]) == (201, "ann", "browser")
    sent = begun.headers["Set-Cookie"]
    for word in ("HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=86400"):
        assert word in sent
    assert "Secure" not in sent
    assert PASSWORD not in begun.body.decode()
    assert "rgt_" not in begun.body.decode()

    cookie = cookie_of(begun)
    assert browser(server, "GET", WHOAMI, cookie).json["name"] == "ann"
    assert browser(server, "POST", TOKENS, cookie).status == 201
    ended = browser(server, "DELETE", SESSION, cookie)
    assert (ended.status, "Max-Age=0" in ended.headers["Set-Cookie"]) == (200, True)
    assert browser(server, "GET", WHOAMI, cookie).status == 401


def test_behind_tls_the_cookie_is_bound_to_this_very_host(tmp_path: Path) -> None:
    with a_team_server(tmp_path, ours=Ours(secure=True)) as server:
        server.add_user("ann")
        begun = browser(server, "POST", SESSION, Origin=server.url.replace("http:", "https:"))
    assert begun.headers["Set-Cookie"].startswith("__Host-regatta-session=rgt_")
    assert "; Secure" in begun.headers["Set-Cookie"]


@pytest.mark.parametrize(
    "headers",
    [{"Origin": "https://elsewhere.example"}, {"X-Regatta-Request": "0"}, {"Origin": "null"}],
)
def test_a_foreign_page_signs_nobody_in(shared: TeamServer, headers: dict[str, str]) -> None:
    shared.token("ann")
    answer = browser(shared, "POST", SESSION, **headers)
    assert answer.code == (403, "NotAllowed")
    assert "Set-Cookie" not in answer.headers


def test_a_cookies_token_is_good_for_nothing_else(shared: TeamServer) -> None:
    shared.token("ann")
    cookie = cookie_of(browser(shared, "POST", SESSION))
    assert shared.ask("GET", WHOAMI, cookie.partition("=")[2]).status == 401


def test_a_wrong_password_tells_nothing_and_sets_nothing(shared: TeamServer) -> None:
    body = {"username": "nobody.here", "password": "not this one"}
    headers = {"Origin": shared.url, "X-Regatta-Request": "1"}
    answer = shared.ask("POST", SESSION, body=body, headers=headers)
    assert (answer.status, answer.json["message"]) == (400, WRONG_SIGN_IN)
    assert "Set-Cookie" not in answer.headers


def test_ones_tokens_are_listed_with_what_there_is_to_know(server: TeamServer) -> None:
    mine = server.token("ann")
    made = server.ask("POST", TOKENS, mine)
    assert (made.status, made.json["kind"]) == (201, "application")
    assert server.ask("GET", WHOAMI, made.json["token"]).json["kind"] == "application"

    first, second = server.ask("GET", TOKENS, mine).json["items"]
    assert (first["handle"], first["current"]) == (made.json["handle"], False)
    assert first["expires"] is None
    assert (second["kind"], second["current"]) == ("sign-in", True)
    assert second["created"] <= second["lastUsed"] < second["expires"]

    assert server.ask("DELETE", f"{TOKENS}/{first['handle']}", mine).status == 200
    assert server.ask("GET", WHOAMI, made.json["token"]).status == 401
    assert server.ask("DELETE", f"{TOKENS}/{first['handle']}", mine).code == (403, "NotAllowed")


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", TOKENS), ("POST", TOKENS), ("DELETE", TOKENS + "/0"), ("DELETE", SESSION)],
)
def test_applications_have_no_say_about_tokens(shared: TeamServer, method: str, path: str) -> None:
    answer = shared.ask(method, path, shared.token("robot", Kind.APPLICATION))
    assert answer.code == (403, "NotAllowed")
