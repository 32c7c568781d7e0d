"""`regatta users` and `groups` where the accounts are another machine's."""

from __future__ import annotations

import pytest

from regatta.client.credentials import Credential, store_credential
from tests.doors import Regatta, Said
from tests.server.accounts.people import PASSWORD

URL = "https://train.example.org"
VERBS = [("users", "list"), ("groups", "list"), ("users", "password", "ann")]


def assert_sends_nobody_astray(said: Said, own: Regatta) -> None:
    assert said.code == 2, said.err
    assert "on the machine of the team's server" in said.err
    assert URL in said.err
    for own_verb in ("whoami", "password", "tokens"):
        assert f"`regatta {own_verb}`" in said.err
    assert "users add" not in said.err
    assert list(own.folder.rglob("team.db")) == []


@pytest.mark.parametrize("words", VERBS)
def test_with_a_server_named_they_say_where_they_work(own: Regatta, words: tuple[str, ...]) -> None:
    assert_sends_nobody_astray(own(*words, REGATTA_SERVER=URL), own)
    assert_sends_nobody_astray(own("--server", URL, *words), own)


def test_with_a_sign_in_they_do_so_too(own: Regatta, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGATTA_HOME", str(own.folder / "home"))
    store_credential(URL, Credential("rgt_x_y", "ann", url=URL))
    assert_sends_nobody_astray(own("users", "list"), own)


def test_an_account_that_is_meant_for_the_server_makes_no_database_here(own: Regatta) -> None:
    add = ("users", "add", "--admin", "boss", "--password-file", "-")
    refused = own(*add, stdin=PASSWORD, REGATTA_SERVER=URL)
    assert_sends_nobody_astray(refused, own)
    assert "unset REGATTA_SERVER" in refused.err
    assert own(*add, stdin=PASSWORD).code == 0


def test_where_the_database_is_they_work_whatever_server_commands_go_to(own: Regatta) -> None:
    add = ("users", "add", "--password-file", "-")
    assert own(*add, "--admin", "boss", stdin=PASSWORD).code == 0
    assert own("users", "list", REGATTA_SERVER=URL).out.count("boss") == 1
    assert own(*add, "ann", stdin=PASSWORD, REGATTA_SERVER=URL).code == 0
    named = f"sqlite:///{own.folder}/named.db"
    made = own(*add, "--database", named, "--admin", "boss", stdin=PASSWORD, REGATTA_SERVER=URL)
    assert made.code == 0, made.err


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (("users", "add"), {"--engine", "--database"}),
        (("groups", "join"), {"--engine", "--database"}),
        (("tokens", "create"), {"--server"}),
        (("login",), {"--server"}),
        (("get",), {"--engine", "--server", "--namespace", "--context", "--kubeconfig"}),
    ],
)
def test_help_shows_the_options_that_mean_something(
    own: Regatta, words: tuple[str, ...], shown: set[str]
) -> None:
    options = {"--engine", "--server", "--namespace", "--context", "--kubeconfig", "--database"}
    said = own(*words, "--help").out
    assert {option for option in options if option in said} == shown
