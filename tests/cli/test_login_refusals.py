"""Why `regatta login` does not let somebody in: always 5, and words for a member."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from regatta.server.accounts.users import disable_user
from regatta.server.records import team_database
from regatta.server.records.moments import now_millis
from regatta.server.team.team_settings import TeamSettings
from tests.doors import Regatta, Said
from tests.server.accounts.people import PASSWORD
from tests.server.team.serving import NO_LIMITS, TeamServer, a_team_server


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TeamServer]:
    """One that tells unknown users, as OpenPAI does, and waits for its database but a moment."""
    monkeypatch.setattr(team_database, "BUSY_MILLIS", 10)
    settings = replace(TeamSettings(rates=NO_LIMITS), tells_unknown_users=True)
    (tmp_path / "team").mkdir()
    with a_team_server(tmp_path / "team", settings=settings) as serving:
        serving.add_user("ann")
        yield serving


def login(own: Regatta, server: TeamServer, name: str, password: str = PASSWORD) -> Said:
    words = ("login", server.url, "--username", name, "--password-file", "-")
    return own(*words, stdin=password)


def test_whatever_keeps_somebody_out_ends_with_five(
    own: Regatta, server: TeamServer, tmp_path: Path
) -> None:
    wrong = login(own, server, "ann", "not this one")
    assert (wrong.code, "Password is incorrect." in wrong.err) == (5, True), wrong.err

    unknown = login(own, server, "nobody.here")
    assert (unknown.code, "User nobody.here is not found." in unknown.err) == (5, True), unknown.err

    server.database.run_here(disable_user, "ann", now_millis())
    disabled = login(own, server, "ann")
    assert (disabled.code, "ask an admin to enable it" in disabled.err) == (5, True), disabled.err

    with closing(sqlite3.connect(tmp_path / "team/team.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        away = login(own, server, "ann")
    assert (away.code, "database" in away.err) == (5, True), away.err

    assert not (own.folder / "home/credentials.json").exists()


def test_a_member_is_not_sent_to_commands_of_the_servers_machine(
    own: Regatta, server: TeamServer
) -> None:
    unknown = login(own, server, "nobody.here")
    assert "regatta users" not in unknown.err
    assert "an admin of that server makes accounts" in unknown.err
