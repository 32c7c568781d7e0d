"""The engine on a small disk that is filled to the last byte."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from regatta.api.errors import DiskFull
from regatta.api.job import Phase
from regatta.engines.blocking import Blocking, in_loop_thread
from regatta.engines.local import deleting, loop, rubbish
from regatta.engines.local.engine import LocalEngine
from regatta.engines.local.home import open_home
from regatta.engines.local.replicas.removing import remove_tree
from regatta.engines.local.store import disk_full
from regatta.engines.local.store.disk_full import RESERVE_BYTES, Reserve, RoomAhead, has_room
from tests.engines.local.jobs import a_job, eventually, submit, wait_for, wait_until_quiet
from tests.engines.local.runs import CAN_MOUNT
from tests.full_disks import SmallDisk, a_small_disk

pytestmark = pytest.mark.skipif(not CAN_MOUNT, reason="only root may mount the small disk")

PRINTS_MUCH = "head -c 300000 /dev/zero | tr '\\0' 'x' | fold -w 100"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with a_small_disk(tmp_path / "disk") as disk:
        yield disk


@pytest.fixture
def engine(disk: SmallDisk) -> Iterator[Blocking]:
    home = open_home(disk.path / "home")
    engine = in_loop_thread(lambda: LocalEngine(home))
    yield engine
    engine.close()


def reserve_of(disk: SmallDisk) -> Path:
    (reserve,) = disk.path.glob("home/*/*.reserve")
    return reserve


def submit_many(engine: Blocking) -> None:
    for number in range(500):
        submit(engine, a_job(f"next-{number}", "true", runPolicy={"suspend": True}))


def wait_until_gone(engine: Blocking, name: str) -> None:
    eventually(lambda: name not in [job.name for job in engine.list(None)], f"the end of {name}")


def an_old_job(engine: Blocking) -> None:
    submit(engine, a_job("old", PRINTS_MUCH))
    wait_for(engine, "old", Phase.COMPLETED)
    wait_until_quiet(engine, "old")


def test_on_a_full_disk_a_submit_is_refused_and_a_delete_makes_room(
    engine: Blocking, disk: SmallDisk
) -> None:
    an_old_job(engine)
    reserve = reserve_of(disk)
    assert reserve.stat().st_blocks * 512 >= RESERVE_BYTES
    disk.fill()
    with pytest.raises(DiskFull, match=r"is full, so nothing was changed.*regatta delete"):
        submit_many(engine)
    disk.fill()
    engine.delete("default", "old")
    names = [job.name for job in engine.list(None)]
    assert "old" not in names
    disk.make_room()
    for name in names:
        engine.delete("default", name)
    eventually(lambda: not engine.list(None), "an empty list")
    eventually(lambda: reserve.exists(), "room being kept again")
    submit(engine, a_job("after", "true"))
    wait_for(engine, "after", Phase.COMPLETED)
    wait_until_quiet(engine, "after")


def test_where_the_reserve_is_gone_the_logs_of_the_deleted_job_make_the_room(
    engine: Blocking, disk: SmallDisk
) -> None:
    an_old_job(engine)
    disk.fill()
    with pytest.raises(DiskFull):
        submit_many(engine)
    reserve_of(disk).unlink()
    disk.fill()
    engine.delete("default", "old")
    assert "old" not in [job.name for job in engine.list(None)]
    assert disk.room > 0


def test_a_live_job_is_deleted_though_the_room_is_eaten_at_once(
    engine: Blocking, disk: SmallDisk
) -> None:
    submit(engine, a_job("hog", f"{PRINTS_MUCH}; exec sleep 600"))
    wait_for(engine, "hog", Phase.RUNNING)
    disk.fill()
    engine.delete("default", "hog")
    disk.fill()

    def gone() -> bool:
        return not engine.list(None)

    eventually(gone, "the end of the job")


def test_the_reserve_never_takes_more_than_it_leaves(disk: SmallDisk) -> None:
    disk.fill()
    reserve = Reserve(disk.path / "reserve")
    reserve.keep()
    assert not reserve.spend()  # there is nothing to take
    (disk.path / "filler").write_bytes(b"x" * (8 * 1024 - 700) * 1024)
    reserve.keep()
    kept = (disk.path / "reserve").stat().st_blocks * 512
    assert kept == RESERVE_BYTES // 4
    assert disk.room >= kept
    reserve.keep()
    assert (disk.path / "reserve").stat().st_blocks * 512 == kept
    disk.fill()
    assert not has_room(disk.path)
    assert reserve.spend()
    assert has_room(disk.path, kept)


@pytest.fixture
def greedy(disk: SmallDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another program takes whatever becomes free on the disk, at once."""

    def remove_and_fill(folder: Path) -> OSError | None:
        failure = remove_tree(folder)
        disk.fill()
        return failure

    def spend_and_fill(reserve: Reserve) -> bool:
        spent = spend(reserve)
        disk.fill()
        return spent

    spend = Reserve.spend
    monkeypatch.setattr(deleting, "remove_job", remove_and_fill)
    monkeypatch.setattr(rubbish, "remove_job", remove_and_fill)
    monkeypatch.setattr(Reserve, "spend", spend_and_fill)


def fill_to_the_last(engine: Blocking, disk: SmallDisk) -> None:
    """The database's own file has no room left either."""
    disk.fill()
    with pytest.raises(DiskFull):
        submit_many(engine)
    disk.fill()


@pytest.mark.usefixtures("greedy")
def test_a_delete_works_though_another_program_takes_the_room_that_it_makes(
    engine: Blocking, disk: SmallDisk
) -> None:
    an_old_job(engine)
    submit(engine, a_job("hog", f"{PRINTS_MUCH}; exec sleep 600"))
    wait_for(engine, "hog", Phase.RUNNING)
    fill_to_the_last(engine, disk)
    engine.delete("default", "old")
    engine.delete_many("default", live=True)
    eventually(lambda: not engine.list(None), "the end of all jobs")


@pytest.fixture
def nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a disk that sets no room aside."""
    monkeypatch.setattr(disk_full, "take_room", lambda *_: True)


@pytest.mark.usefixtures("nothing_kept", "greedy")
def test_where_no_room_is_left_a_delete_says_what_is_gone_and_works_once_there_is(
    engine: Blocking, disk: SmallDisk
) -> None:
    an_old_job(engine)
    fill_to_the_last(engine, disk)
    for said in ("the logs of 1 run were removed.*delete it again", "nothing was changed"):
        with pytest.raises(DiskFull, match=said):
            engine.delete("default", "old")
    assert "old" in [job.name for job in engine.list(None)]
    disk.make_room()
    engine.delete("default", "old")
    assert "old" not in [job.name for job in engine.list(None)]


def test_nothing_that_would_start_replicas_is_accepted_and_what_runs_goes_on(
    engine: Blocking, disk: SmallDisk
) -> None:
    submit(engine, a_job("runs", "exec sleep 600"))
    submit(engine, a_job("sleeps", "true", runPolicy={"suspend": True}))
    wait_for(engine, "runs", Phase.RUNNING)
    before = engine.pods("default", "runs")
    disk.take_no_more_files()
    for refused in (
        lambda: engine.scale("default", "runs", "worker", 2),
        lambda: engine.resume("default", "sleeps"),
        lambda: submit(engine, a_job("next", "true")),
    ):
        with pytest.raises(DiskFull, match="is full, so nothing was changed"):
            refused()
    assert [(pod.uid, pod.phase) for pod in before] == [
        (pod.uid, pod.phase) for pod in engine.pods("default", "runs")
    ]
    disk.take_files()
    engine.scale("default", "runs", "worker", 2)
    engine.resume("default", "sleeps")
    wait_for(engine, "sleeps", Phase.COMPLETED)
    engine.delete("default", "runs")
    wait_until_gone(engine, "runs")


def a_job_in_its_init_container(engine: Blocking, go: Path, script: str) -> None:
    """`go`, on another disk, made: then the script is played."""
    job = a_job("late", script)
    until = {"name": "fetch", "command": ["sh", "-c", f"until [ -e {go} ]; do sleep 0.02; done"]}
    job["spec"]["worker"]["template"]["spec"]["initContainers"] = [until]
    submit(engine, job)
    eventually(lambda: [p for p in engine.pods("default", "late") if p.started_at], "its start")


def is_on_record_as_running(engine: Blocking) -> None:
    wait_for(engine, "late", Phase.RUNNING)
    engine.delete("default", "late")
    eventually(lambda: not engine.list(None), "an empty list")


def test_a_replica_that_started_on_a_full_disk_is_on_record_once_there_is_room(
    engine: Blocking, disk: SmallDisk, tmp_path: Path
) -> None:
    go, up = tmp_path / "go", tmp_path / "up"
    a_job_in_its_init_container(engine, go, f"touch {up}; exec sleep 600")
    disk.fill()
    go.touch()
    eventually(up.exists, "its program")
    disk.make_room()
    is_on_record_as_running(engine)


def test_a_start_that_could_not_be_recorded_is_recorded_once_there_is_room(
    engine: Blocking, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The supervisor found room for its word of it, and the records did not."""
    go = tmp_path / "go"
    a_job_in_its_init_container(engine, go, "exec sleep 600")
    monkeypatch.setattr(loop, "RETRY", 0.1)
    monkeypatch.setattr(RoomAhead, "is_left", lambda _: False)
    go.touch()
    eventually(lambda: engine.traits().notices, "a word about the full disk")
    monkeypatch.undo()
    is_on_record_as_running(engine)
