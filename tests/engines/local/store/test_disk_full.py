"""The engine on a small disk that is filled to the last byte."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from regatta.api.errors import DiskFull
from regatta.api.job import Phase
from regatta.engines.blocking import Blocking, in_loop_thread
from regatta.engines.local.engine import LocalEngine
from regatta.engines.local.home import open_home
from regatta.engines.local.store.disk_full import RESERVE_BYTES
from tests.engines.local.jobs import a_job, eventually, submit, wait_for, wait_until_quiet
from tests.engines.local.runs import CAN_MOUNT

pytestmark = pytest.mark.skipif(not CAN_MOUNT, reason="only root may mount the small disk")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", place], check=True)
    yield place
    subprocess.run(["umount", "--lazy", place], check=True)


def fill(disk: Path) -> None:
    with open(disk / "filler", "ab", buffering=0) as file:
        for size in (64 * 1024, 1):
            with contextlib.suppress(OSError):
                while True:
                    file.write(b"x" * size)
    assert os.statvfs(disk).f_bavail == 0


def submit_many(engine: Blocking) -> None:
    for number in range(500):
        submit(engine, a_job(f"next-{number}", "true", runPolicy={"suspend": True}))


def test_on_a_full_disk_a_submit_is_refused_and_a_delete_makes_room(small_disk: Path) -> None:
    home = open_home(small_disk / "home")
    engine = in_loop_thread(lambda: LocalEngine(home))
    try:
        script = "head -c 300000 /dev/zero | tr '\\0' 'x' | fold -w 100"
        submit(engine, a_job("old", script))
        wait_for(engine, "old", Phase.COMPLETED)
        wait_until_quiet(engine, "old")
        (reserve,) = small_disk.glob("home/*/*.reserve")
        assert reserve.stat().st_blocks * 512 >= RESERVE_BYTES
        fill(small_disk)
        with pytest.raises(DiskFull, match=r"is full, so nothing was changed.*regatta delete"):
            submit_many(engine)
        fill(small_disk)
        engine.delete("default", "old")
        names = [job.name for job in engine.list(None)]
        assert "old" not in names
        os.unlink(small_disk / "filler")
        for name in names:
            engine.delete("default", name)
        eventually(lambda: not engine.list(None), "an empty list")
        eventually(lambda: reserve.exists(), "room being kept again")
        submit(engine, a_job("after", "true"))
        wait_for(engine, "after", Phase.COMPLETED)
        wait_until_quiet(engine, "after")
    finally:
        engine.close()
