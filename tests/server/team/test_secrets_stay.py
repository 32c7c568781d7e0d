"""A secret that a member sends is in the process that it is for, and in the one file from which it
has it: in nothing else that a team's server keeps, prints or answers."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from regatta.server.accounts.tokens import Kind
from regatta.server.records.job_rows import JobRow, job_of
from tests.chaos.team_servers import Answer, Member, TeamProcess, records
from tests.doors import eventually
from tests.server.records.postgresql import PostgreSQL
from tests.server.team.planted import (
    PLANTED,
    SUM,
    answers,
    files_with_it,
    holds,
    planted_config,
    rows_with_it,
)

LOUD = "planted-aloud-81b2"


class Serving(NamedTuple):
    server: TeamProcess
    folder: Path
    ann: Member
    boss: Member

    def send(self, config: str) -> Answer:
        return self.ann.ask(
            "POST", "/rest-server/api/v2/jobs", config, {"Content-Type": "text/yaml"}
        )

    def row(self, name: str) -> JobRow:
        with records(self.server.url) as database:
            return database.read_here(job_of, "ann", name)

    def reaches(self, name: str, state: str) -> JobRow:
        eventually(lambda: self.row(name).state == state, f"{name} to be {state}")
        return self.row(name)

    def said(self, name: str) -> dict[str, str]:
        """Of the job, to an admin, who is told the most."""
        row = self.row(name)
        return answers(self.ask, "ann", name, row.namespace, row.engine_name)

    def ask(self, path: str) -> tuple[int, str]:
        said = self.boss.ask("GET", path)
        return said.status, said.body if isinstance(said.body, str) else json.dumps(said.body)


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def serving(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Serving]:
    folder = tmp_path_factory.mktemp("secrets")
    url = f"sqlite:///{folder}/home/team.db"
    if request.param == "postgresql":
        postgresql: PostgreSQL = request.getfixturevalue("postgresql")
        url = postgresql.new_database()
    server = TeamProcess(folder, url).start()
    boss = server.account("boss", admin=True, kind=Kind.SIGN_IN)
    try:
        yield Serving(server, folder, server.account("ann"), boss)
    finally:
        server.stop()


@pytest.mark.parametrize("end", ["SUCCEEDED", "STOPPED"])
def test_it_is_in_one_file_of_its_run_and_nowhere_after(
    serving: Serving, tmp_path: Path, end: str
) -> None:
    name, go = f"job-{end.lower()}", tmp_path / "go"
    config = planted_config(name, str(go))
    sent = serving.send(config)
    assert sent.status == 202, sent
    # Again, and one that is refused: what is said of them must not repeat it.
    said = [serving.send(config), serving.send(config.replace("memoryMB: 128", "memoryMB: much"))]
    dry = {"text": config.replace(f"name: {name}", "name: dry")}
    said += [serving.ann.ask("POST", "/regatta/v1/jobs?dryRun=true", dry)]
    assert [one.status for one in said] == [409, 400, 200]
    assert not holds(str(said))

    row = serving.reaches(name, "RUNNING")
    eventually(lambda: SUM in str(serving.said(name)), "the process to say that it has it")
    (place,) = files_with_it(serving.folder)
    assert (place.name, place.parent.name) == ("secrets.json", row.engine_uid)
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    is_nowhere_else(serving, name)

    if end == "STOPPED":
        stop = f"/rest-server/api/v2/jobs/ann~{name}/executionType"
        assert serving.ann.ask("PUT", stop, {"value": "STOP"}).status == 202
    else:
        go.touch()
    serving.reaches(name, end)
    eventually(lambda: not place.exists(), "its file to go")
    assert files_with_it(serving.folder) == []
    is_nowhere_else(serving, name)


def is_nowhere_else(serving: Serving, name: str) -> None:
    told = serving.said(name)
    assert len([path for path, text in told.items() if name in text]) > 15, told.keys()
    assert "/regatta/v1/audit" in told
    assert [path for path, text in told.items() if holds(text)] == []
    assert rows_with_it(serving.server.url) == []
    assert not holds(serving.server.log)


def test_what_looks_for_it_finds_it(serving: Serving) -> None:
    """In a job that says it aloud: its log, its record, its answers."""
    config = planted_config("loud", "/").replace("<% $secrets.token %>", LOUD)
    config = config.replace("| md5sum", "").replace(f"token: {PLANTED}", "token: none")
    assert serving.send(config).status == 202
    serving.reaches("loud", "SUCCEEDED")
    told = serving.said("loud")
    found = [path for path, text in told.items() if holds(text, LOUD)]
    assert any("/config" in path for path in found)
    assert any(path.startswith("http") for path in found)  # what it printed
    assert rows_with_it(serving.server.url, LOUD)
    assert files_with_it(serving.folder, LOUD)
