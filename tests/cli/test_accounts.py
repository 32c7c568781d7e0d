"""Accounts by command: those of the database here, and signing in at a server."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from regatta.server.accounts.administration import COMMAND_LINE
from regatta.server.accounts.audit import read_audit
from regatta.server.accounts.tokens import Kind
from regatta.server.records.team_database import Database
from tests.doors import OpenTerminal, Regatta, shell_job
from tests.server.accounts.people import PASSWORD
from tests.server.team.serving import TeamServer, a_team_server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TeamServer]:
    with a_team_server(tmp_path_factory.mktemp("team")) as serving:
        serving.add_user("ann")
        yield serving


@pytest.fixture(scope="module")
def with_boss(tmp_path_factory: pytest.TempPathFactory) -> Regatta:
    """An admin, and a file with a password that will do and one that will not."""
    regatta = Regatta(tmp_path_factory.mktemp("with-boss"))
    add(regatta, "--admin", "boss")
    regatta.write(PASSWORD, "pw")
    regatta.write("12345", "short")
    return regatta


def add(regatta: Regatta, *words: str) -> None:
    done = regatta("users", "add", *words, "--password-file", "-", stdin=PASSWORD + "\n")
    assert done.code == 0, done.err


def listed(regatta: Regatta, what: str = "users") -> dict[str, Any]:
    found = json.loads(regatta(what, "list", "-o", "json").out)["items"]
    return {one["name"]: one for one in found}


def login(regatta: Regatta, url: str, name: str = "ann", password: str = PASSWORD) -> Any:
    words = ("login", url, "--username", name, "--password-file", "-")
    return regatta(*words, stdin=password)


# Of the database here


def test_before_the_first_account_every_verb_says_how_to_make_it(own: Regatta) -> None:
    for words in (("users", "list"), ("groups", "list"), ("users", "promote", "ann")):
        done = own(*words)
        assert done.code == 4
        assert "there are no accounts yet" in done.err
        assert "`regatta users add --admin NAME`" in done.err
    assert list((own.folder / "home").rglob("team.db")) == []


def test_accounts_are_made_changed_and_removed(own: Regatta) -> None:
    (own.folder / "home").mkdir()
    (own.folder / "home/config.yaml").write_text("team: {virtualClusters: [vc1, vc2]}")
    add(own, "--admin", "boss")
    add(own, "ann", "--email", "ann@example.org")
    assert own("users", "promote", "ANN").out == "ann is an admin now\n"
    assert own("users", "demote", "ann").out == "ann is no admin any more\n"
    assert own("users", "uid", "ann", "20001").code == 0
    assert own("users", "clusters", "ann", "vc1", "vc2").out == "ann is granted vc1, vc2\n"
    assert own("users", "disable", "ann").code == 0

    ann = listed(own)["ann"]
    assert (ann["admin"], ann["disabled"], ann["unixUid"]) == (False, True, 20001)
    assert (ann["email"], ann["groups"]) == ("ann@example.org", ["default"])
    table = own("users", "list").out.splitlines()
    assert table[0].split() == ["NAME", "ADMIN", "DISABLED", "GROUPS", "CLUSTERS", "UID", "EMAIL"]
    shown = ["ann", "-", "disabled", "default", "vc1,vc2", "20001", "ann@example.org"]
    assert table[1].split() == shown

    assert own("users", "uid", "ann", "none").code == 0
    assert own("users", "enable", "ann").code == 0
    assert own("users", "clusters", "ann").code == 0
    assert listed(own)["ann"]["virtualClusters"] == []
    assert "`regatta users demote NAME`" in own("users", "remove", "boss").err
    assert own("users", "remove", "ann").out == "ann is removed\n"
    assert list(listed(own)) == ["boss"]


def test_groups_are_made_filled_and_removed(own: Regatta) -> None:
    add(own, "--admin", "boss")
    add(own, "ann")
    assert own("groups", "add", "vision", "--description", "eyes").code == 0
    assert own("groups", "join", "vision", "ann").out == "ann is in default, vision\n"
    assert listed(own, "groups")["vision"] == {
        "name": "vision",
        "description": "eyes",
        "members": ["ann"],
        "virtualClusters": [],
    }
    (own.folder / "home/config.yaml").write_text("team: {virtualClusters: [default, gpu]}\n")
    granted = own("groups", "clusters", "vision", "gpu")
    assert (granted.code, granted.out) == (0, "vision is granted gpu\n"), granted.err
    assert listed(own, "groups")["vision"]["virtualClusters"] == ["gpu"]
    assert "vision       ann" in own("groups", "list").out
    refused = own("groups", "clusters", "vision", "gold")
    assert (refused.code, "Virtual cluster gold is not found" in refused.err) == (2, True)
    assert own("groups", "clusters", "vision").out == "vision is granted no virtual cluster\n"
    assert own("groups", "leave", "vision", "ann").out == "ann is in default\n"
    assert own("groups", "remove", "vision").code == 0
    assert list(listed(own, "groups")) == ["admingroup", "default"]
    assert own("groups", "join", "admingroup", "ann").code == 0
    assert listed(own)["ann"]["admin"] is True


def test_what_commands_did_is_in_the_audit(own: Regatta) -> None:
    add(own, "--admin", "boss")
    own("groups", "add", "vision")
    database = Database(f"sqlite:///{next((own.folder / 'home').rglob('team.db'))}")
    entries = database.read_here(read_audit).entries
    database.close()
    assert [(e.who, e.what) for e in entries] == [
        (COMMAND_LINE, "groups add vision"),
        (COMMAND_LINE, "users add --admin boss"),
    ]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("users", "add", "boss", "--password-file", "pw"), 4, "User name boss already exists."),
        (("users", "add", "a b"), 2, "username is 'a b'"),
        (("users", "add", "bob"), 2, "--password-file FILE"),
        (("users", "add", "bob", "--password-file", "none"), 2, "cannot be read"),
        (("users", "add", "bob", "--password-file", "short"), 2, "at least 6"),
        (("users", "demote", "boss"), 2, "last admin"),
        (("users", "remove", "nobody.here"), 4, "`regatta users list`"),
        (("users", "clusters", "boss", "nowhere"), 2, "`team.virtualClusters`"),
        (("users", "uid", "boss", "0"), 2, "one of the system's"),
        (("users", "uid", "boss", "me"), 2, "Write a number"),
        (("groups", "join", "none", "boss"), 4, "`regatta groups list`"),
        (("groups", "remove", "default"), 2, "always there"),
        (("users", "list", "--server", "http://x"), 2, "leave --server out"),
        (("users", "list", "--database", "mysql://x"), 2, "postgresql://"),
    ],
)
def test_what_cannot_be_is_refused_with_what_to_do(
    with_boss: Regatta, words: tuple[str, ...], code: int, said: str
) -> None:
    done = with_boss(*words)
    assert (done.code, said in done.err) == (code, True), done.err
    assert done.out == ""


def test_another_database_can_be_named(own: Regatta) -> None:
    url = f"sqlite:///{own.folder}/elsewhere.db"
    add(own, "--admin", "boss", "--database", url)
    assert own("users", "list", "--database", url).out.count("boss") == 1
    assert own("users", "list").code == 4


def test_settings_say_which_database_it_is(own: Regatta) -> None:
    (own.folder / "home").mkdir()
    url = f"sqlite:///{own.folder}/team-of-settings.db"
    (own.folder / "home/config.yaml").write_text(yaml.safe_dump({"team": {"database": url}}))
    add(own, "--admin", "boss")
    assert (own.folder / "team-of-settings.db").exists()


def test_a_terminal_asks_twice_and_shows_nothing(own_terminal: OpenTerminal) -> None:
    asked = own_terminal("users", "add", "--admin", "boss")
    asked.until("Password of boss: ")
    asked.type(PASSWORD + "\n")
    asked.until("once more: ")
    asked.type(PASSWORD + "\n")
    asked.until("boss can sign in now, as an admin")
    assert asked.end() == 0
    assert PASSWORD not in asked.seen

    differs = own_terminal("users", "password", "boss")
    differs.until("Password of boss: ")
    differs.type(PASSWORD + "\n")
    differs.until("once more: ")
    differs.type("another\n")
    differs.until("the two passwords differ")
    assert differs.end() == 2


# At a server


def test_who_signs_in_is_known_to_that_server_until_signing_out(
    own: Regatta, server: TeamServer
) -> None:
    done = login(own, server.url)
    assert done.code == 0, done.err
    assert f"signed in at {server.url} as ann, for 7d" in done.out
    assert f"regatta --server {server.url} get" in done.out
    kept = own.folder / "home/credentials.json"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600

    told = json.loads(own("--server", server.url, "whoami", "-o", "json").out)
    assert (told["name"], told["admin"], told["kind"]) == ("ann", False, "sign-in")
    assert told["namespace"] == "user-ann"
    said = own("whoami", REGATTA_SERVER=server.url).out
    assert "ann at" in said
    assert "  virtual clusters: default\n" in said
    own.write(shell_job("by-command"))
    assert own("--server", server.url, "run", "job.yaml").code == 0
    token = json.loads(kept.read_text())["servers"][server.url]["token"]

    assert own("logout", server.url).out == f"signed out at {server.url}\n"
    assert token not in kept.read_text()
    assert server.ask("GET", "/regatta/v1/whoami", token).status == 401
    assert own("logout", server.url).code == 4


def test_signing_in_again_ends_the_sign_in_before(own: Regatta, server: TeamServer) -> None:
    kept = own.folder / "home/credentials.json"
    tokens = []
    for _ in range(2):
        assert login(own, server.url).code == 0
        tokens.append(json.loads(kept.read_text())["servers"][server.url]["token"])

    assert [server.ask("GET", "/regatta/v1/whoami", one).status for one in tokens] == [401, 200]


def test_who_has_signed_in_and_finds_nothing_here_is_told_where_the_jobs_may_be(
    own: Regatta, server: TeamServer
) -> None:
    hint = f"`regatta --server {server.url} get`"
    assert hint not in own("get").err
    assert login(own, server.url).code == 0

    assert hint in own("get").err
    assert hint not in own("get", REGATTA_SERVER=server.url).err

    kept = own.folder / "home/credentials.json"
    content = json.loads(kept.read_text())
    [stored] = content["servers"].values()
    kept.write_text(json.dumps({"servers": {server.url: {**stored, "expires": 1_700_000_000}}}))
    assert hint not in own("get").err
    kept.write_text("torn")
    assert (done := own("get")).code == 0, done.err
    own("server", "stop")


def test_who_is_not_signed_in_is_told_how(own: Regatta, server: TeamServer) -> None:
    done = own("--server", server.url, "get")
    assert done.code == 5
    assert f"Sign in: `regatta login {server.url}`" in done.err
    done = own("--server", server.url, "version")
    assert (done.code, done.err) == (0, "")
    assert f"server runs, and does not know you: `regatta login {server.url}`" in done.out


def test_who_is_not_let_in_is_told_why_as_far_as_this_side_knows(
    own: Regatta, server: TeamServer
) -> None:
    get = ("--server", server.url, "get")
    done = own(*get)
    assert f"you are not signed in at {server.url}" in done.err
    assert "REGATTA_TOKEN" not in done.err

    login(own, server.url)
    other = server.url.replace("127.0.0.1", "localhost")
    assert f"You are signed in at {server.url}" in own("--server", other, "get").err

    kept = own.folder / "home/credentials.json"
    content = json.loads(kept.read_text())
    [stored] = content["servers"].values()
    stored["token"] = "rgt_none_such"
    kept.write_text(json.dumps(content))
    done = own(*get)
    assert done.code == 5
    assert f"your sign-in at {server.url} is no longer good" in done.err
    assert f"`regatta login {server.url}`" in done.err

    stored["expires"] = 1_700_000_000
    kept.write_text(json.dumps(content))
    assert "has expired, since 2023-11-14T22:13:20Z" in own(*get).err

    assert "the token in REGATTA_TOKEN is not good" in own(*get, REGATTA_TOKEN="rgt_x_y").err


def test_verbs_about_sign_ins_go_where_there_is_one(own: Regatta, server: TeamServer) -> None:
    assert (own("whoami").code, "regatta login URL" in own("whoami").err) == (5, True)
    login(own, server.url + "/rest-server/")
    assert f"ann at {server.url}" in own("whoami").out
    assert "(this one)" in own("tokens", "list").out
    assert f"ann at {server.url}" in own("--server", server.url, "whoami").out
    assert "No jobs" in own("get").err  # this machine's, as ever
    assert own("server", "stop").code == 0
    assert own("logout").code == 0
    assert own("whoami").code == 5


def test_verbs_about_sign_ins_ask_which_where_there_are_several(
    own: Regatta, server: TeamServer
) -> None:
    other = server.url.replace("127.0.0.1", "localhost")
    for url in (server.url, other):
        assert login(own, url).code == 0
    for words in (("whoami",), ("tokens", "list"), ("logout",)):
        done = own(*words)
        assert done.code == 2
        assert server.url in done.err
        assert other in done.err
        assert "--server URL" in done.err


def test_a_token_of_the_environment_comes_before_the_one_that_is_kept(
    own: Regatta, server: TeamServer
) -> None:
    login(own, server.url)
    bob = server.token("bob")
    assert "bob at" in own("--server", server.url, "whoami", REGATTA_TOKEN=bob).out


def test_a_wrong_password_keeps_nothing(own: Regatta, server: TeamServer) -> None:
    for name in ("ann", "nobody.here"):
        done = login(own, server.url, name, "not this one")
        assert done.code == 5
        assert "User name or password is incorrect." in done.err
    assert not (own.folder / "home/credentials.json").exists()


def test_a_password_does_not_cross_a_network_in_clear(own: Regatta) -> None:
    done = login(own, "http://192.0.2.1:8080")
    assert done.code == 2
    assert "in clear" in done.err
    assert "--insecure" in done.err


@pytest.mark.parametrize("time", ["30s", "8d", "5"])
def test_a_sign_in_holds_for_a_minute_to_a_week(
    own: Regatta, server: TeamServer, time: str
) -> None:
    assert own("login", server.url, "--username", "ann", "--for", time).code == 2


def test_a_server_for_one_person_has_no_accounts(fresh: Regatta) -> None:
    fresh("server", "start")
    url = fresh.address.url
    for words in (("login", url, "--username", "ann", "--password-file", "-"), ("whoami",)):
        done = fresh(*words, stdin=PASSWORD)
        assert done.code == 2
        assert "has no accounts: it serves one person" in done.err


def test_a_terminal_asks_for_name_and_password(
    server: TeamServer, own_terminal: OpenTerminal
) -> None:
    asked = own_terminal("login", server.url)
    asked.until("User: ")
    asked.type("ann\n")
    asked.until("Password of ann: ")
    asked.type(PASSWORD + "\n")
    asked.until("signed in at")
    assert asked.end() == 0
    assert PASSWORD not in asked.seen


def test_nobody_types_a_password_for_a_server_that_is_not_there(
    own_terminal: OpenTerminal, free_tcp_port: int
) -> None:
    asked = own_terminal("login", f"http://127.0.0.1:{free_tcp_port}", "--username", "ann")
    asked.until("no server answers")
    assert asked.end() == 5
    assert "Password" not in asked.seen


def test_tokens_are_made_listed_and_revoked(own: Regatta, server: TeamServer) -> None:
    login(own, server.url)
    made = own("tokens", "create", REGATTA_SERVER=server.url)
    token = made.out.strip()
    handle = token.split("_")[1]
    assert f"`regatta tokens revoke {handle}`" in made.err
    assert token not in made.err
    assert "ann at" in own("--server", server.url, "whoami", REGATTA_TOKEN=token).out

    lines = own("tokens", "list", "--server", server.url).out.splitlines()
    assert lines[0].split() == ["HANDLE", "KIND", "AGE", "EXPIRES", "LAST", "USED"]
    assert any(handle in line and "application" in line and "never" in line for line in lines)
    assert sum("(this one)" in line for line in lines) == 1
    assert token not in "\n".join(lines)

    revoke = ("tokens", "revoke", handle, "--server", server.url)
    assert own(*revoke).out == f"{handle} is revoked\n"
    again = own(*revoke)
    assert (again.code, f"you have no token {handle}" in again.err) == (4, True)
    assert server.ask("GET", "/regatta/v1/whoami", token).status == 401


def test_an_application_makes_no_tokens(own: Regatta, server: TeamServer) -> None:
    token = server.token("ann", Kind.APPLICATION)
    done = own("tokens", "create", REGATTA_SERVER=server.url, REGATTA_TOKEN=token)
    assert done.code == 5
    assert "an application's token" in done.err
