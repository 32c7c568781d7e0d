from __future__ import annotations

import base64

import pytest
from sqlalchemy import Connection

from regatta.server.accounts import tokens
from regatta.server.accounts.identity import Door, Shown, identify, shown_by
from regatta.server.accounts.tokens import Kind, issue, note_use, revoke
from regatta.server.accounts.user_groups import Group, add_to_group, create_group
from regatta.server.accounts.users import UserChanges, delete_user, disable_user, update_user
from regatta.server.origins import Ours
from tests.server.accounts.people import NOW, a_user, refused

OURS = Ours()
GUEST = "Guest is not allowed to do this operation."
INVALID = "Your token is invalid."
COOKIE = {"host": "127.0.0.1:8080", "cookie": "regatta-session=secret"}


def basic(text: str | bytes) -> str:
    raw = text if isinstance(text, bytes) else text.encode()
    return "Basic " + base64.b64encode(raw).decode()


@pytest.mark.parametrize(
    ("headers", "shown"),
    [
        ({"authorization": "Bearer abc"}, Shown(Door.BEARER, "abc")),
        ({"authorization": "bearer  abc "}, Shown(Door.BEARER, "abc")),
        ({"authorization": basic("ann:abc")}, Shown(Door.BASIC, "abc", "ann")),
        ({"authorization": basic("ann:a:b")}, Shown(Door.BASIC, "a:b", "ann")),
        (COOKIE, Shown(Door.COOKIE, "secret")),
        ({**COOKIE, "authorization": "Bearer abc"}, Shown(Door.BEARER, "abc")),
        ({**COOKIE, "authorization": ""}, Shown(Door.COOKIE, "secret")),
    ],
)
def test_what_a_request_shows(headers: dict[str, str], shown: Shown) -> None:
    assert shown_by("GET", headers, OURS) == shown


@pytest.mark.parametrize("headers", [{}, {"authorization": " "}, {"cookie": "other=1"}])
def test_who_shows_nothing_is_a_guest(headers: dict[str, str]) -> None:
    with refused(401, "UnauthorizedUserError", GUEST):
        shown_by("GET", headers, OURS)


@pytest.mark.parametrize(
    "value",
    [
        "Bearer",
        "Bearer ",
        "Token abc",
        "abc",
        "Basic",
        "Basic !!!",
        "Basic é",
        basic("ann:abc").replace("Basic", "Digest"),
        basic("ann:abc").replace("Y", "Y!"),
        basic("ann:abc")[:-1],
        basic("no colon"),
        basic(":no name"),
        basic(b"\xff:abc"),
        "Bearer " + "x" * 5000,
    ],
)
def test_what_can_be_no_token_is_invalid_whatever_the_cookie(value: str) -> None:
    with refused(401, "UnauthorizedUserError", INVALID):
        shown_by("GET", {**COOKIE, "authorization": value}, OURS)


def test_a_cookie_that_writes_keeps_the_rules_for_browsers() -> None:
    page = {**COOKIE, "origin": "http://127.0.0.1:8080", "x-regatta-request": "1"}
    assert shown_by("POST", page, OURS).door is Door.COOKIE
    for missing in ("origin", "x-regatta-request"):
        with refused(403, "ForbiddenUserError"):
            shown_by("POST", {k: v for k, v in page.items() if k != missing}, OURS)
    with refused(403, "ForbiddenUserError"):
        shown_by("POST", {**page, "origin": "http://127.0.0.1:9090"}, OURS)


def test_a_token_in_a_header_needs_no_page() -> None:
    shown_by("POST", {"authorization": "Bearer abc", "host": "127.0.0.1"}, OURS)


def test_what_was_shown_is_not_printed() -> None:
    assert "abc" not in repr(Shown(Door.BEARER, "abc", "ann"))


@pytest.mark.parametrize("door", Door)
@pytest.mark.parametrize("kind", Kind)
def test_each_door_takes_its_own_kind_of_token(
    connection: Connection, door: Door, kind: Kind
) -> None:
    ann = a_user(connection, "ann")
    token = issue(connection, ann.id, kind, NOW)
    shown = Shown(door, token.value, "ann" if door is Door.BASIC else None)
    taken = {
        (Door.BEARER, Kind.SIGN_IN),
        (Door.BEARER, Kind.APPLICATION),
        (Door.BASIC, Kind.APPLICATION),
        (Door.COOKIE, Kind.BROWSER),
    }

    if (door, kind) in taken:
        caller = identify(connection, shown, NOW).caller
        assert (caller.name, caller.kind, caller.handle) == ("ann", kind, token.handle)
        assert caller.application is (kind is Kind.APPLICATION)
    else:
        with refused(401, "UnauthorizedUserError", INVALID):
            identify(connection, shown, NOW)


@pytest.mark.parametrize(("name", "right"), [("ann", True), ("ANN", True), ("bob", False)])
def test_basic_names_whose_token_it_is(connection: Connection, name: str, right: bool) -> None:
    ann, _ = a_user(connection, "ann"), a_user(connection, "bob")
    shown = Shown(Door.BASIC, issue(connection, ann.id, Kind.APPLICATION, NOW).value, name)
    if right:
        assert identify(connection, shown, NOW).caller.name == "ann"
    else:
        with refused(401, "UnauthorizedUserError", INVALID):
            identify(connection, shown, NOW)


@pytest.mark.parametrize("end", ["revoked", "expired", "disabled", "deleted"])
def test_a_token_that_is_over_is_invalid(connection: Connection, end: str) -> None:
    ann = a_user(connection, "ann")
    token = issue(connection, ann.id, Kind.SIGN_IN, NOW, 60)
    shown = Shown(Door.BEARER, token.value)
    identify(connection, shown, NOW)
    if end == "revoked":
        revoke(connection, ann.id, token.handle, NOW)
    elif end == "disabled":
        disable_user(connection, "ann", NOW)
    elif end == "deleted":
        delete_user(connection, "ann")

    with refused(401, "UnauthorizedUserError", INVALID):
        identify(connection, shown, NOW + (60_000 if end == "expired" else 0))


def test_what_a_caller_may_is_looked_up_each_time(connection: Connection) -> None:
    ann = a_user(connection, "Ann")
    a_user(connection, "boss", admin=True)
    create_group(connection, Group("devs", "", "", {}), NOW)
    shown = Shown(Door.BEARER, issue(connection, ann.id, Kind.SIGN_IN, NOW).value)
    before = identify(connection, shown, NOW).caller
    assert (before.name, before.admin, before.groups) == ("Ann", False, ("default",))

    add_to_group(connection, "ann", "devs")
    update_user(connection, "ann", UserChanges(admin=True))

    after = identify(connection, shown, NOW).caller
    assert (after.admin, after.groups) == (True, ("default", "admingroup", "devs"))


def test_a_use_is_noted_once_in_a_while(connection: Connection) -> None:
    token = issue(connection, a_user(connection, "ann").id, Kind.SIGN_IN, NOW)
    shown = Shown(Door.BEARER, token.value)

    assert identify(connection, shown, NOW).note_use
    note_use(connection, token.handle, NOW)
    assert not identify(connection, shown, NOW + 1).note_use
    assert identify(connection, shown, NOW + tokens.USE_GRAIN).note_use
