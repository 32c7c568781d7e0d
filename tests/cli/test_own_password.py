"""`regatta password`: a member changes the password of the own account, without an admin."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from regatta.server.accounts.tokens import Kind
from tests.doors import OpenTerminal, Regatta, Said
from tests.server.accounts.people import PASSWORD
from tests.server.team.serving import TeamServer, a_team_server

NEW = "another horse"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TeamServer]:
    with a_team_server(tmp_path_factory.mktemp("team")) as serving:
        yield serving


@pytest.fixture
def own(tmp_path: Path) -> Regatta:
    regatta = Regatta(tmp_path)
    regatta.write(PASSWORD + "\n", "old")
    regatta.write(NEW + "\n", "new")
    return regatta


def login(own: Regatta, server: TeamServer, name: str, password: str = PASSWORD) -> Said:
    words = ("login", server.url, "--username", name, "--password-file", "-")
    return own(*words, stdin=password)


def test_a_member_changes_the_own_password_and_stays_signed_in(
    own: Regatta, server: TeamServer
) -> None:
    server.add_user("ann")
    elsewhere, program = server.token("ann"), server.token("ann", Kind.APPLICATION)
    assert login(own, server, "ann").code == 0

    done = own("password", "--old-password-file", "-", "--password-file", "new", stdin=PASSWORD)

    assert done.code == 0, done.err
    assert f"ann has another password at {server.url}" in done.out
    assert "other sign-ins there have ended; this one stays" in done.out
    assert own("whoami").code == 0
    assert server.ask("GET", "/regatta/v1/whoami", elsewhere).status == 401
    assert server.ask("GET", "/regatta/v1/whoami", program).status == 200
    assert login(own, server, "ann").code == 5
    assert login(own, server, "ann", NEW).code == 0


def test_who_does_not_know_the_present_password_changes_nothing(
    own: Regatta, server: TeamServer
) -> None:
    server.add_user("bob")
    login(own, server, "bob")
    done = own("password", server.url, "--old-password-file", "new", "--password-file", "new")
    assert done.code == 5
    assert "not the present password of bob" in done.err
    assert "`regatta users password bob`" in done.err
    assert NEW not in done.err
    assert login(own, server, "bob").code == 0


def test_a_new_password_keeps_to_the_rules(own: Regatta, server: TeamServer) -> None:
    server.add_user("cid")
    login(own, server, "cid")
    done = own("password", "--old-password-file", "old", "--password-file", "-", stdin="short")
    assert (done.code, "at least 6" in done.err) == (2, True), done.err


def test_a_script_says_where_both_passwords_are(own: Regatta, server: TeamServer) -> None:
    server.add_user("dan")
    login(own, server, "dan")
    both = own("password", "--old-password-file", "-", "--password-file", "-", stdin=PASSWORD)
    assert (both.code, "are both -" in both.err) == (2, True), both.err
    none = own("password", "--password-file", "new")
    assert (none.code, "Give it with --old-password-file FILE" in none.err) == (2, True), none.err
    gone = own("password", "--old-password-file", "gone", "--password-file", "new")
    assert (gone.code, "--old-password-file gone cannot be read" in gone.err) == (2, True), gone.err


def test_who_is_not_signed_in_or_is_an_application_is_told_so(
    own: Regatta, server: TeamServer
) -> None:
    assert "you are not signed in anywhere" in own("password").err
    done = own("password", server.url)
    assert done.code == 5
    assert f"you are not signed in at {server.url}" in done.err
    program = server.token("eve", Kind.APPLICATION)
    done = own("password", server.url, REGATTA_TOKEN=program)
    assert done.code == 5
    assert "good for jobs alone" in done.err


def test_neither_password_crosses_a_network_in_clear(own: Regatta) -> None:
    done = own("password", "http://192.0.2.1:8080")
    assert (done.code, "in clear" in done.err) == (2, True), done.err


def test_a_terminal_asks_for_the_present_one_and_twice_for_the_new_one(
    own: Regatta, server: TeamServer, own_terminal: OpenTerminal
) -> None:
    server.add_user("fay")
    login(own, server, "fay")
    asked = own_terminal("password")
    asked.until("Present password of fay: ")
    asked.type(PASSWORD + "\n")
    asked.until("New password of fay: ")
    asked.type(NEW + "\n")
    asked.until("once more: ")
    asked.type(NEW + "\n")
    asked.until("fay has another password")
    assert asked.end() == 0
    assert PASSWORD not in asked.seen
    assert NEW not in asked.seen
