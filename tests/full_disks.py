"""Small disks of their own for tests, filled to the last byte and emptied again."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.engines.local.runs import CAN_MOUNT

SIZE = "8m"


def _can_loop() -> bool:
    if not CAN_MOUNT or shutil.which("mkfs.ext4") is None:
        return False
    return subprocess.run(["losetup", "--find"], capture_output=True).returncode == 0


#: What this machine lets us mount.
KINDS = [kind for kind, can in (("tmpfs", CAN_MOUNT), ("ext4", _can_loop())) if can]


class SmallDisk:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._filler = path / "filler"

    def fill(self) -> None:
        for _ in range(100):
            with open(self._filler, "ab", buffering=0) as file:
                for size in (64 * 1024, 1024, 1):
                    with contextlib.suppress(OSError):
                        while True:
                            file.write(b"x" * size)
            if self.room == 0:  # else somebody gave room back meanwhile
                return
        raise AssertionError(f"{self.path} cannot be filled")

    def fill_for_good(self) -> None:
        """Until nobody gives room back any more, such as a program that is about to end."""
        self.fill()
        for _ in range(60):
            time.sleep(1)
            if self.room == 0:
                return
            self.fill()
        raise AssertionError(f"somebody makes room on {self.path} again and again")

    def take_no_more_files(self) -> None:
        """Of a tmpfs: bytes there are, and none of them can be had for a new file."""
        found = os.statvfs(self.path)
        self._remount(found.f_files - found.f_ffree)

    def take_files(self) -> None:
        self._remount(0)

    def _remount(self, most_files: int) -> None:
        options = f"remount,nr_inodes={most_files}"
        subprocess.run(["mount", "-o", options, self.path], check=True)

    def make_room(self) -> None:
        self._filler.unlink(missing_ok=True)

    @property
    def room(self) -> int:
        found = os.statvfs(self.path)
        return found.f_bavail * found.f_frsize


@contextmanager
def a_small_disk(place: Path, kind: str = "tmpfs", size: str = SIZE) -> Iterator[SmallDisk]:
    place.mkdir(parents=True, exist_ok=True)
    if kind == "ext4":
        image = place.with_suffix(".img")
        subprocess.run(["truncate", "-s", size, image], check=True)
        subprocess.run(["mkfs.ext4", "-q", "-m", "0", image], check=True)
        mount = ["-o", "loop", str(image)]
    else:
        mount = ["-t", "tmpfs", "-o", f"size={size}", "regatta-test"]
    subprocess.run(["mount", *mount, place], check=True)
    try:
        yield SmallDisk(place)
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)
