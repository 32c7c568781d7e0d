"""Commands on the machine of a team's server, by somebody who may not have signed in."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from regatta.server.accounts.tokens import Kind
from tests.chaos.team_servers import TeamProcess
from tests.doors import Regatta
from tests.server.accounts.people import PASSWORD


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TeamProcess]:
    folder = tmp_path_factory.mktemp("team")
    url = f"sqlite:///{folder}/elsewhere.db"
    server = TeamProcess(folder, url, "--isolation", "none").start()
    yield server
    server.kill()


@pytest.fixture(scope="module")
def here(serving: TeamProcess) -> Regatta:
    return Regatta(serving.state.parent)


def test_who_is_not_signed_in_is_told_where_the_server_is(
    serving: TeamProcess, here: Regatta
) -> None:
    url = f"http://127.0.0.1:{serving.port}"
    assert serving.process is not None
    for words in (("server", "start"), ("server", "status"), ("version",)):
        done = here(*words)
        said = done.out + done.err
        assert done.code == 0, said
        assert "are a team's" in said
        assert f"{url} (process {serving.process.pid}, version " in said
        assert f"`regatta login {url}`" in said
        assert "server.log" not in said
    assert json.loads(here("server", "status", "-o", "json").out)["url"] == url

    refused = here("server", "stop")
    assert refused.code == 5
    assert f"you are not signed in at {url}" in refused.err
    assert "REGATTA_TOKEN" not in refused.err


def test_a_restart_is_refused_before_anything_is_stopped(
    serving: TeamProcess, here: Regatta
) -> None:
    admin = serving.account("boss", admin=True, kind=Kind.SIGN_IN)
    done = here("server", "restart", REGATTA_TOKEN=admin.token)
    assert done.code == 2
    assert "can be stopped from here, and not started" in done.err
    assert admin.ask("GET", "/regatta/v1/jobs").status == 200
    status = here("server", "status", REGATTA_TOKEN=admin.token).out
    assert "in the foreground, for a team" in status


def test_a_second_server_is_told_how_the_first_ends(serving: TeamProcess, here: Regatta) -> None:
    done = here("serve", "--team", "--isolation", "none", "--database", serving.url)
    assert done.code == 4
    assert "Ctrl-C where it runs, or `regatta server stop`, signed in as an admin" in done.err


def test_accounts_that_are_elsewhere_are_not_said_to_be_none(
    serving: TeamProcess, here: Regatta
) -> None:
    done = here("users", "list")
    assert (done.code, done.out) == (4, "")
    served = serving.url.removeprefix("sqlite:///")
    assert f"the server that runs here keeps its accounts in {served}" in done.err
    assert "no accounts" not in done.err
    assert "--database URL" in done.err


def test_accounts_of_another_database_than_the_servers_are_told_apart(
    serving: TeamProcess, here: Regatta
) -> None:
    words = ("users", "add", "carl", "--password-file", "-")
    done = here(*words, stdin=PASSWORD)
    assert done.code == 0, done.err
    served = serving.url.removeprefix("sqlite:///")
    assert f"the server that runs here keeps its accounts in {served}" in done.err
    assert "--database URL" in done.err
    assert "can sign in now" not in done.out

    done = here(*words, "--database", serving.url, stdin=PASSWORD)
    assert (done.out, done.err) == ("carl can sign in now\n", "")


def test_where_the_server_is_down_nobody_is_sent_to_start_one_for_one_person(
    tmp_path: Path,
) -> None:
    server = TeamProcess(tmp_path, f"sqlite:///{tmp_path}/team.db", "--isolation", "none").start()
    server.kill()
    here = Regatta(tmp_path)
    for words in (("server", "start"), ("server", "status"), ("server", "stop"), ("version",)):
        done = here(*words)
        assert done.code == (0 if words == ("version",) else 5), done
        assert "starts it with `regatta serve --team`" in done.err
        assert "`regatta server start`" not in done.err
        assert "server.log" not in done.err
