"""A secret that a member sends is in the process that it is for, and in the one file from which that
process has it: in nothing else that a team's server keeps, prints or answers."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from regatta.server.accounts.tokens import Kind
from regatta.server.records.job_rows import JobRow, job_of
from tests.chaos.team_servers import SETTINGS, Member, TeamServer, records
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

CONFIG = {"Content-Type": "text/yaml"}


class Serving(NamedTuple):
    server: TeamServer
    folder: Path
    ann: Member
    boss: Member

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


@pytest.fixture(params=["sqlite", "postgresql"])
def serving(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Serving]:
    url = f"sqlite:///{tmp_path}/home/team.db"
    if request.param == "postgresql":
        postgresql: PostgreSQL = request.getfixturevalue("postgresql")
        url = postgresql.new_database()
    settings = f"{SETTINGS}  isolation: {{kind: none, work: {tmp_path}/work}}\n"
    server = TeamServer(tmp_path, url, settings=settings).start()
    boss = server.account("boss", admin=True, kind=Kind.SIGN_IN)
    try:
        yield Serving(server, tmp_path, server.account("ann"), boss)
    finally:
        server.stop()


@pytest.mark.parametrize("end", ["SUCCEEDED", "STOPPED"])
def test_it_is_in_one_file_of_its_run_and_nowhere_after(
    serving: Serving, tmp_path: Path, end: str
) -> None:
    go = tmp_path / "go"
    config = planted_config("job", str(go))
    sent = serving.ann.ask("POST", "/rest-server/api/v2/jobs", config, CONFIG)
    assert sent.status == 202, sent
    # Again, and one that is refused: what is said of them must not repeat it.
    said = [serving.ann.ask("POST", "/rest-server/api/v2/jobs", config, CONFIG)]
    wrong = config.replace("memoryMB: 128", "memoryMB: much")
    said += [serving.ann.ask("POST", "/rest-server/api/v2/jobs", wrong, CONFIG)]
    dry = {"text": config.replace("name: job", "name: dry")}
    said += [serving.ann.ask("POST", "/regatta/v1/jobs?dryRun=true", dry)]
    assert [one.status for one in said] == [409, 400, 200]
    assert not holds(str(said))

    row = serving.reaches("job", "RUNNING")
    eventually(lambda: SUM in str(serving.said("job")), "the process to say that it has it")
    (place,) = files_with_it(tmp_path)
    assert (place.name, place.parent.name) == ("secrets.json", row.engine_uid)
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    _is_nowhere_else(serving)

    if end == "STOPPED":
        stop = "/rest-server/api/v2/jobs/ann~job/executionType"
        assert serving.ann.ask("PUT", stop, {"value": "STOP"}).status == 202
    else:
        go.touch()
    serving.reaches("job", end)
    eventually(lambda: not place.exists(), "its file to go")
    assert files_with_it(tmp_path) == []
    _is_nowhere_else(serving)


def _is_nowhere_else(serving: Serving) -> None:
    told = serving.said("job")
    about = [path for path, text in told.items() if "job" in text]
    assert len(about) > 15, told.keys()
    assert "/regatta/v1/audit" in told
    assert [path for path, text in told.items() if holds(text)] == []
    assert rows_with_it(serving.server.url) == []
    assert not holds(serving.server.log)


def test_what_looks_for_it_finds_it(serving: Serving, tmp_path: Path) -> None:
    """In a job that says it aloud: its log, its record, its answers."""
    config = planted_config("job", "/").replace("<% $secrets.token %>", PLANTED)
    config = config.replace("| md5sum", "").replace(f"token: {PLANTED}", "token: none")
    assert serving.ann.ask("POST", "/rest-server/api/v2/jobs", config, CONFIG).status == 202
    serving.reaches("job", "SUCCEEDED")
    told = serving.said("job")
    found = [path for path, text in told.items() if holds(text)]
    assert any("/config" in path for path in found)
    assert any(path.startswith("http") for path in found)  # what it printed
    assert rows_with_it(serving.server.url)
    assert files_with_it(tmp_path)
