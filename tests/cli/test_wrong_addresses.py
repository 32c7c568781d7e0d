"""Addresses of a team's server with a path that it does not have."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.doors import Regatta, Said
from tests.server.accounts.people import PASSWORD
from tests.server.team.serving import TeamServer, a_team_server

#: A typing mistake, and the paths of routes, which people copy from examples.
WRONG = ["/foo/bar", "/api/v2", "/regatta/v1", "/rest-server/foo"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TeamServer]:
    with a_team_server(tmp_path_factory.mktemp("team")) as serving:
        serving.add_user("ann")
        yield serving


def login(own: Regatta, url: str, password: str = PASSWORD) -> Said:
    return own("login", url, "--username", "ann", "--password-file", "-", stdin=password)


def assert_names_the_address(said: Said, server: TeamServer, path: str) -> None:
    assert said.code == 5
    assert f"there is no Regatta server at {server.url}{path}" in said.err
    assert f"`regatta login {server.url}`" in said.err
    for false in ("URL", "not signed in", "no longer good", "serves one person"):
        assert false not in said.err


@pytest.mark.parametrize("path", WRONG)
def test_who_was_never_signed_in_is_told_the_right_address(
    own: Regatta, server: TeamServer, path: str
) -> None:
    assert_names_the_address(login(own, server.url + path + "/"), server, path)
    assert not (own.folder / "home/credentials.json").exists()


def test_who_is_signed_in_is_told_the_same_by_every_verb_about_accounts(
    own: Regatta, server: TeamServer
) -> None:
    assert login(own, server.url).code == 0
    url = server.url + "/foo/bar"
    assert_names_the_address(login(own, url), server, "/foo/bar")
    for words in (("whoami",), ("tokens", "list"), ("password",)):
        assert_names_the_address(own("--server", url, *words), server, "/foo/bar")


def test_the_path_of_a_gateway_is_right_and_a_wrong_password_stays_one(
    own: Regatta, server: TeamServer
) -> None:
    url = server.url + "/rest-server"
    assert "User name or password is incorrect." in login(own, url, "not this one").err
    assert f"you are not signed in at {url}" in own("--server", url, "whoami").err
    assert login(own, url).code == 0


def test_a_server_for_one_person_is_called_that_under_any_path(fresh: Regatta) -> None:
    fresh("server", "start")
    said = login(fresh, fresh.address.url + "/foo/bar")
    assert "has no accounts: it serves one person" in said.err
