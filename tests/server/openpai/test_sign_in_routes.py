"""What OpenPAI tells of itself, and how one signs in and out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from regatta.server.accounts.administration import disable_user
from regatta.server.accounts.rate_limits import Rate, Rates
from regatta.server.accounts.tokens import Kind
from regatta.server.openpai_errors import WRONG_SIGN_IN
from regatta.server.team.team_settings import TeamSettings
from tests.server.accounts.people import PASSWORD
from tests.server.team.serving import NO_LIMITS, Answer, TeamServer, a_team_server

LOGIN = "/rest-server/api/v2/authn/basic/login"


def sign_in(server: TeamServer, name: str, password: str = PASSWORD, **more: str) -> Answer:
    return server.ask("POST", LOGIN, form={"username": name, "password": password, **more})


@pytest.mark.parametrize("before", ["", "/rest-server"])
@pytest.mark.parametrize("after", ["", "/"])
def test_anybody_may_ask_what_this_is_and_how_to_sign_in(
    shared: TeamServer, before: str, after: str
) -> None:
    def get(path: str) -> Any:
        return shared.ask("GET", f"{before}{path}{after}").json

    assert "PAI RESTful API" in get("/api/v1")["message"]
    info = get("/api/v2/info")
    assert (info["name"], info["launcherType"]) == ("PAI RESTful API", "k8s")
    assert info["authnMethod"] == "basic"
    for version in ("v1", "v2"):
        assert get(f"/api/{version}/authn/info") == {
            "authn_type": "basic",
            "loginURI": "/api/v2/authn/basic/login",
            "loginURIMethod": "post",
        }


@pytest.mark.parametrize("way", ["form", "body"])
def test_a_form_and_json_sign_in_alike(shared: TeamServer, way: str) -> None:
    shared.token("way" + way)
    sent: Any = {way: {"username": "way" + way, "password": PASSWORD}}

    answer = shared.ask("POST", LOGIN, **sent)
    older = shared.ask("POST", "/api/v1/token", **sent)

    assert answer.status == older.status == 200
    told, told_before = answer.json, older.json
    assert told.keys() == {"token", "user", "admin"}
    assert told_before == {**told, "token": told_before["token"], "hasGitHubPAT": False}
    for token in (told["token"], told_before["token"]):
        me = shared.ask("GET", "/api/v2/users/me", token).json
        assert (me["username"], me["admin"]) == ("way" + way, False)


def test_json_with_a_content_type_of_text_is_read(shared: TeamServer) -> None:
    shared.token("texter")
    text = f'{{"username": "texter", "password": "{PASSWORD}"}}'
    answer = shared.ask("POST", LOGIN, text=text, headers={"Content-Type": "text/plain"})
    assert answer.status == 200


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ({"form": {"username": "ann"}}, "password"),
        ({"form": {"username": "ann", "password": "x" * 8, "expiration": "59"}}, "expiration"),
        ({"form": {"username": "ann", "password": "x" * 8, "expiration": "soon"}}, "expiration"),
        ({"body": {"username": 7, "password": "x" * 8}}, "username: expected `str`, got `int`"),
        ({"body": []}, "expected `object`"),
        ({"text": "{"}, "cannot be read as JSON"),
        ({"text": ""}, "username"),
        ({"text": b"\xff\xfe{}"}, "cannot be read as JSON"),
        ({"text": '{"username": "\\ud800", "password": "12345678"}'}, "cannot be read as JSON"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_field(
    shared: TeamServer, sent: Any, said: str
) -> None:
    answer = shared.ask("POST", LOGIN, **sent)
    assert answer.code == (400, "InvalidParametersError")
    assert said in answer.json["message"]
    assert answer.json.keys() == {"code", "message"}


def test_a_token_lives_as_long_as_was_asked_for(server: TeamServer) -> None:
    server.add_user("ann")
    token = sign_in(server, "ann", expiration="4000").json["token"]
    check = server.ask("GET", "/api/v2/tokens/check", token).json
    assert (check["username"], check["application"]) == ("ann", False)
    assert check["exp"] - check["iat"] == 4000

    server.pass_time(3999)
    assert server.ask("GET", "/api/v2/tokens/check", token).status == 200
    server.pass_time(2)
    answer = server.ask("GET", "/api/v2/tokens/check", token)
    assert answer.code == (401, "UnauthorizedUserError")
    assert answer.json["message"] == "Your token is invalid."


def test_an_unknown_name_and_a_wrong_password_are_answered_alike(shared: TeamServer) -> None:
    shared.token("alike")
    answers = [sign_in(shared, name, "not this one") for name in ("alike", "nobodyhere")]
    for answer in answers:
        assert answer.code == (400, "IncorrectPasswordError")
        assert answer.json["message"] == WRONG_SIGN_IN
    assert answers[0].body == answers[1].body


def test_settings_can_ask_for_openpais_two_answers(tmp_path: Path) -> None:
    settings = TeamSettings(rates=NO_LIMITS, tells_unknown_users=True)
    with a_team_server(tmp_path, settings=settings) as server:
        server.add_user("ann")
        unknown, wrong = (sign_in(server, name, "not this one") for name in ("xann", "ann"))
    assert unknown.json == {"code": "NoUserError", "message": "User xann is not found."}
    assert wrong.json == {"code": "IncorrectPasswordError", "message": "Password is incorrect."}
    assert unknown.status == wrong.status == 400


def test_somebody_who_is_disabled_hears_so_only_with_the_right_password(server: TeamServer) -> None:
    token = server.token("ann")
    server.database.run_here(disable_user, "ann", server.now())
    assert sign_in(server, "ann").code == (403, "ForbiddenUserError")
    assert "disabled" in sign_in(server, "ann").json["message"]
    assert sign_in(server, "ann", "not this one").json["message"] == WRONG_SIGN_IN
    assert server.ask("GET", "/api/v2/users/me", token).status == 401


def test_the_audit_has_failed_sign_ins_by_names_that_exist_alone(server: TeamServer) -> None:
    server.add_user("Ann")
    sign_in(server, "ann")
    sign_in(server, "ANN", "not this one")
    sign_in(server, "hunter2 my password", "not this one")
    entries = server.audited(3)
    line = "POST /api/v2/authn/basic/login"
    assert [(e.who, e.what, e.status, e.result, e.address) for e in entries] == [
        ("", line, 400, "IncorrectPasswordError", "127.0.0.1"),
        ("Ann", line, 400, "IncorrectPasswordError", "127.0.0.1"),
        ("Ann", line, 200, "", "127.0.0.1"),
    ]
    assert "hunter2" not in str(entries)


def test_signing_out_ends_this_token_and_no_other(shared: TeamServer) -> None:
    one, other = shared.token("leaver"), shared.token("leaver")
    logout = "/api/v2/authn/basic/logout"
    assert shared.ask("DELETE", logout, one).json == {"message": "Logout successfully"}
    assert shared.ask("DELETE", logout, one).code == (401, "UnauthorizedUserError")
    assert shared.ask("GET", "/api/v2/users/me", other).status == 200


def test_an_application_cannot_sign_out(shared: TeamServer) -> None:
    token = shared.token("program", Kind.APPLICATION)
    answer = shared.ask("DELETE", "/api/v2/authn/basic/logout", token)
    assert answer.code == (403, "ForbiddenUserError")
    assert answer.json["message"] == "Applications are not allowed to do this operation."


def test_who_guesses_is_told_to_wait_and_for_how_long(tmp_path: Path) -> None:
    rates = Rates(sign_in_name=Rate(3, 300.0), sign_in_address=Rate(100, 300.0))
    with a_team_server(tmp_path, settings=TeamSettings(rates=rates)) as server:
        server.add_user("ann")
        codes = [sign_in(server, "ann", f"guess {n}") for n in range(8)]
    assert [answer.status for answer in codes[:3]] == [400] * 3
    last = codes[-1]
    assert last.code == (429, "TooManyRequestsError")
    assert 0 < int(last.headers["Retry-After"]) <= 300


def test_an_address_that_asks_too_often_waits(tmp_path: Path) -> None:
    rates = Rates(requests=Rate(5, 3600.0))
    with a_team_server(tmp_path, settings=TeamSettings(rates=rates)) as server:
        answers = [server.ask("GET", "/api/v2/info") for _ in range(6)]
    assert [answer.status for answer in answers] == [200] * 5 + [429]
    assert int(answers[-1].headers["Retry-After"]) > 0


@pytest.mark.parametrize("path", [LOGIN, "/regatta/v1/session"])
def test_who_is_not_known_sends_little(shared: TeamServer, path: str) -> None:
    answer = shared.ask("POST", path, text=" " * (64 * 1024 + 1))
    assert answer.status == 413
    assert "64 KiB is the most" in answer.json["message"]
    assert ("problems" in answer.json) == path.startswith("/regatta")


def test_who_is_not_known_sends_little_in_pieces_either(shared: TeamServer) -> None:
    pieces: Any = (b" " * 1024 for _ in range(80))
    answer = shared.ask("POST", LOGIN, text=pieces)
    assert answer.code == (413, "InvalidParametersError")
