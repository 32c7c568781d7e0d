from __future__ import annotations

import pytest

from regatta.server.accounts.browser_sessions import (
    check_browser,
    cookie_name,
    ended_cookie,
    session_cookie,
    session_shown,
)
from regatta.server.origins import Ours
from tests.server.accounts.people import refused

OURS = Ours(secure=True, names=frozenset({"train.example"}))
GOOD = {
    "host": "train.example",
    "origin": "https://train.example",
    "x-regatta-request": "1",
}


def test_a_cookie_over_tls_is_bound_to_this_host() -> None:
    assert session_cookie("rgt_x", 60, secure=True) == (
        "__Host-regatta-session=rgt_x; Path=/; Max-Age=60; HttpOnly; SameSite=Strict; Secure"
    )


def test_a_cookie_on_loopback_has_all_but_that() -> None:
    assert session_cookie("rgt_x", 60, secure=False) == (
        "regatta-session=rgt_x; Path=/; Max-Age=60; HttpOnly; SameSite=Strict"
    )


@pytest.mark.parametrize("secure", [True, False])
def test_an_ended_session_is_an_empty_cookie_that_is_over(secure: bool) -> None:
    ended = ended_cookie(secure=secure)
    assert ended.startswith(f"{cookie_name(secure=secure)}=; Path=/; Max-Age=0; HttpOnly")


@pytest.mark.parametrize(
    ("cookies", "shown"),
    [
        ("", None),
        ("other=1", None),
        ("__Host-regatta-session=abc", "abc"),
        ('a=1; __Host-regatta-session="abc" ; b=2', "abc"),
        ("__Host-regatta-session=", None),
        ("regatta-session=abc", None),
        ("__host-regatta-session=abc", None),
        (";;=;", None),
    ],
)
def test_the_session_is_read_from_its_own_cookie(cookies: str, shown: str | None) -> None:
    assert session_shown(cookies, secure=True) == shown


def test_two_sessions_are_one_too_many() -> None:
    with refused(401, "UnauthorizedUserError", "Your token is invalid."):
        session_shown("regatta-session=a; regatta-session=b", secure=False)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "post", "ODD"])
def test_a_page_of_ours_writes_with_the_header(method: str) -> None:
    check_browser(method, GOOD, OURS)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "post", "ODD"])
@pytest.mark.parametrize(
    ("header", "value", "said"),
    [
        ("x-regatta-request", None, "X-Regatta-Request: 1"),
        ("x-regatta-request", "0", "X-Regatta-Request: 1"),
        ("origin", None, "no Origin"),
        ("origin", "null", "no page of this server"),
        ("origin", "https://evil.example", "no page of this server"),
        ("origin", "http://train.example", "no page of this server"),
        ("origin", "https://train.example:8443", "no page of this server"),
        ("origin", "https://train.example.evil.example", "no page of this server"),
        ("host", "evil.example", "no page of this server"),
    ],
)
def test_what_a_foreign_page_could_send_writes_nothing(
    method: str, header: str, value: str | None, said: str
) -> None:
    sent = {name: text for name, text in GOOD.items() if name != header}
    if value is not None:
        sent[header] = value
    with refused(403, "ForbiddenUserError", said):
        check_browser(method, sent, OURS)


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
def test_reading_needs_neither(method: str) -> None:
    check_browser(method, {"host": "train.example"}, OURS)


def test_a_foreign_page_does_not_even_read() -> None:
    with refused(403, "ForbiddenUserError"):
        check_browser("GET", {"host": "train.example", "origin": "https://evil.example"}, OURS)


def test_a_conversation_needs_an_origin_of_ours() -> None:
    talk = {"host": "train.example", "upgrade": "WebSocket"}
    with refused(403, "ForbiddenUserError", "no Origin"):
        check_browser("GET", talk, OURS)
    with refused(403, "ForbiddenUserError"):
        check_browser("GET", {**talk, "origin": "https://evil.example"}, OURS)
    check_browser("GET", {**talk, "origin": "https://train.example"}, OURS)
