"""The whole of it on a disk that is filled to the last byte: what runs, what starts, what is said.

Nothing here is broken: the words must say that the disk is full and what helps, and whatever makes
room must work.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from regatta.daemon.find import answering
from regatta.daemon.server_files import is_held
from tests.doors import Regatta, Said, a_regatta, eventually, shell_job
from tests.full_disks import KINDS, SmallDisk, a_small_disk

pytestmark = pytest.mark.skipif(not KINDS, reason="only root may mount the small disks")

FULL = "the disk that holds {} is full"


@pytest.fixture(params=KINDS)
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SmallDisk]:
    with a_small_disk(tmp_path / "disk", request.param, "16m") as disk:
        yield disk


@pytest.fixture
def regatta(disk: SmallDisk) -> Iterator[Regatta]:
    with a_regatta(disk.path) as regatta:
        yield regatta
        disk.make_room()


@pytest.fixture
def go(tmp_path: Path) -> Path:
    """Made, it ends the waiting job, with exit code 3. It is on another disk."""
    return tmp_path / "go"


def submit(regatta: Regatta, name: str, script: str) -> None:
    said = regatta("submit", "-", stdin=shell_job(name, script))
    assert said.code == 0, said.err


def an_old_job(regatta: Regatta) -> None:
    submit(regatta, "old", "seq 1 50000")
    assert regatta("wait", "old").code == 0


def a_waiting_job(regatta: Regatta, go: Path) -> None:
    submit(regatta, "waiting", f"while [ ! -e {go} ]; do sleep 0.05; done; exit 3")
    assert regatta("wait", "waiting", "--for", "running").code == 0


def use_up_the_records_own_room(regatta: Regatta, disk: SmallDisk, go: Path) -> None:
    """The first end on a full disk is still recorded: that room was taken before."""
    submit(regatta, "first", f"while [ ! -e {go} ]; do sleep 0.05; done")
    assert regatta("wait", "first", "--for", "running").code == 0
    disk.fill()
    go.touch()
    assert regatta("wait", "first").code == 0
    disk.fill_for_good()


def kill_server(regatta: Regatta, *, guardian: bool) -> None:
    pid = regatta.address.pid
    if guardian:
        os.kill(parent_of(pid), signal.SIGKILL)
    os.kill(pid, signal.SIGKILL)
    eventually(
        lambda: not is_held(regatta.files.server_lock) or _successor(regatta, pid), "its end"
    )


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def _successor(regatta: Regatta, pid: int) -> bool:
    found = answering(regatta.files)
    return found is not None and found.pid != pid


def all_read(regatta: Regatta) -> None:
    """Every door that only looks works."""
    for words in (["get"], ["describe", "old"], ["logs", "old", "--tail", "1"], ["events"]):
        said = regatta(*words)
        assert said.code == 0, (words, said)
        assert "backup" not in said.err
    assert "old " in regatta("get").out
    assert regatta("logs", "old", "--tail", "1").out.endswith("50000\n")


def test_on_a_full_disk_all_can_be_read_however_the_server_ended_and_a_delete_makes_room(
    regatta: Regatta, disk: SmallDisk
) -> None:
    an_old_job(regatta)
    disk.fill()
    all_read(regatta)
    refused = regatta("submit", "-", stdin=shell_job("next", "true"))
    assert refused.code == 1
    assert FULL.format(regatta.files.folder) in refused.err
    assert regatta("server", "stop").code == 0
    disk.fill()
    all_read(regatta)
    guardian = parent_of(regatta.address.pid)
    disk.fill()
    kill_server(regatta, guardian=False)
    disk.fill()
    all_read(regatta)
    assert parent_of(regatta.address.pid) == guardian
    kill_server(regatta, guardian=True)
    disk.fill()
    all_read(regatta)
    disk.fill()
    assert regatta("delete", "old") == Said(0, "job old deleted\n", "")
    assert regatta("get").out == ""
    assert disk.room > 0


def test_the_server_stopped_and_the_disk_full_a_delete_is_the_first_command(
    regatta: Regatta, disk: SmallDisk
) -> None:
    an_old_job(regatta)
    regatta("server", "stop")
    disk.fill()
    assert regatta("delete", "old") == Said(0, "job old deleted\n", "")
    assert disk.room > 0


def test_a_live_job_is_ended_and_deleted_on_a_full_disk(
    regatta: Regatta, disk: SmallDisk, go: Path
) -> None:
    a_waiting_job(regatta, go)
    disk.fill()
    said = regatta("delete", "waiting")
    assert (said.code, said.out) == (0, "job waiting deleted\n")


# ext4 gives removed files' room back when its journal is next committed: an end may find some then.
@pytest.mark.parametrize("disk", ["tmpfs"], indirect=True)
def test_an_end_that_cannot_be_recorded_is_told_by_every_door(
    regatta: Regatta, disk: SmallDisk, go: Path
) -> None:
    # Its log and its exit record take all that is kept for them: an end that leaves room behind
    # would be recorded.
    script = f"while [ ! -e {go} ]; do sleep 0.05; done; seq 1 50000; exit 3"
    job = shell_job("waiting", script)
    run = regatta.start("run", regatta.write(job))
    eventually(lambda: regatta("wait", "waiting", "--for", "running").code == 0, "a running job")
    (reserve,) = regatta.files.folder.rglob("exit.json.reserve")
    os.truncate(reserve, 8 * 1024)
    use_up_the_records_own_room(regatta, disk, go.with_name("first"))
    go.touch()
    full = FULL.format(regatta.files.folder)
    unrecorded = f"{full}: that worker-0 ended with exit code 3 cannot be recorded."
    said = eventually(lambda: (s := regatta("get")).err and s, "a word about the full disk")
    assert said.err.startswith(f"warning: waiting: {unrecorded} Delete old jobs")
    described = regatta("describe", "waiting").out
    assert f"Trouble:\n  {unrecorded}" in described
    assert "NotRecorded" in described
    assert "warning: " + full in regatta("server", "status").err
    assert "note: " + full in regatta("top").err
    status = json.loads(regatta.wire.request("GET", "/namespaces/default/jobs/waiting"))["status"]
    assert (status["phase"], status["reason"]) == ("Running", "DiskFull")
    assert status["message"].startswith(unrecorded)
    server = json.loads(regatta.wire.request("GET", "/server"))
    assert server["notices"][0].startswith(full)
    late = regatta("wait", "waiting", "--timeout", "5s")
    assert unrecorded in late.err
    assert late.code == 124
    disk.make_room()
    out, _ = run.communicate(timeout=60)
    assert f"-- job waiting: {unrecorded}" in out
    assert run.returncode == 1
    described = regatta("describe", "waiting").out
    assert "Trouble" not in described
    assert "worker-0 failed first with exit code 3" in described
    assert regatta("get").err == ""
    assert regatta("server", "status").err == ""


def test_an_end_while_no_server_ran_is_on_record_once_one_starts(
    regatta: Regatta, disk: SmallDisk, go: Path
) -> None:
    a_waiting_job(regatta, go)
    regatta("server", "stop")
    disk.fill()
    go.touch()
    eventually(lambda: list(disk.path.glob("home/*/jobs/*/pods/*/runs/*/exit.json")), "its end")
    assert regatta("wait", "waiting").code == 1
    assert "failed first with exit code 3" in regatta("describe", "waiting").out


def test_without_any_room_left_the_words_say_so_and_nothing_is_lost(
    regatta: Regatta, disk: SmallDisk
) -> None:
    an_old_job(regatta)
    regatta("server", "stop")
    (reserve,) = disk.path.glob("home/*/*.reserve")
    reserve.unlink()
    disk.fill()
    for words in (["get"], ["logs", "old"], ["delete", "old"]):
        said = regatta(*words)
        assert said.code == 5
        assert said.err.startswith("error: the server cannot start: the disk that holds ")
        assert "is full" in said.err
        assert "Remove something else" in said.err
        assert "backup" not in said.err
    disk.make_room()
    all_read(regatta)


@pytest.mark.parametrize("disk", ["tmpfs"], indirect=True)
def test_where_no_file_can_be_made_a_server_starts_and_a_delete_works(
    regatta: Regatta, disk: SmallDisk
) -> None:
    an_old_job(regatta)
    kill_server(regatta, guardian=True)
    disk.take_no_more_files()
    try:
        assert "old " in regatta("get").out
        assert regatta("delete", "old") == Said(0, "job old deleted\n", "")
    finally:
        disk.take_files()
