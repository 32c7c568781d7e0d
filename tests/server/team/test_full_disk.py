"""A team's server on a disk that is full, its records beside the engine's: people make room by
deleting, as without a team."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from regatta.api.errors import RecordsFull
from regatta.server.records.job_writes import deletes_on_record, mark_deletes
from regatta.server.records.submits import begin_submit
from regatta.server.records.team_database import Database
from tests.doors import eventually, shell_job
from tests.engines.local.runs import CAN_MOUNT
from tests.full_disks import a_small_disk
from tests.server.records.rows import NOW, a_new_job
from tests.server.team.serving import TeamServer, a_team_server

JOBS = "/regatta/v1/namespaces/user-ann/jobs"
#: As many bytes of log as a small job has.
SPEAKS = "yes this is what a training says of itself | head -c 500000"

pytestmark = pytest.mark.skipif(not CAN_MOUNT, reason="only root mounts a small disk")


def _speak(server: TeamServer, token: str, name: str) -> None:
    sent = server.ask("POST", "/regatta/v1/jobs", token, body={"text": shell_job(name, SPEAKS)})
    assert sent.status == 201, sent.body
    place = f"{JOBS}/{name}"
    eventually(
        lambda: server.ask("GET", place, token).json["status"].get("phase") == "Completed", name
    )


def test_what_is_deleted_on_a_full_disk_goes_with_its_record(tmp_path: Path) -> None:
    with a_small_disk(tmp_path / "disk", size="24m") as disk, a_team_server(disk.path) as server:
        ann = server.token("ann")
        for name in ("one", "two", "three"):
            _speak(server, ann, name)
        disk.fill_for_good()
        assert server.ask("PUT", "/api/v2/jobs/ann~one/tag", ann, body={"value": "t"}).status == 503

        assert server.ask("DELETE", f"{JOBS}/one", ann).status == 200
        gone = server.ask("DELETE", JOBS, ann)
        assert (gone.status, gone.json["jobs"]) == (200, 2), gone.body

        assert server.ask("GET", "/api/v2/jobs", ann).json == []


def test_that_a_job_is_to_be_deleted_is_on_record_before_there_is_room(tmp_path: Path) -> None:
    """Else nobody knew of it who comes after a server that was killed."""
    with a_small_disk(tmp_path / "disk", size="24m") as disk:
        database = Database(f"sqlite:///{disk.path}/team.db")
        database.run_here(begin_submit, a_new_job(id="one"))
        disk.fill_for_good()
        with pytest.raises(RecordsFull):
            database.run_here(mark_deletes, ["one"], NOW)

        assert asyncio.run(database.make_room(mark_deletes, ["one"], NOW)) == ["one"]

        assert [row.id for row in database.read_here(deletes_on_record)] == ["one"]
        database.close()
