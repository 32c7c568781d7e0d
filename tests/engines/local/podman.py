"""A podman of the tests' own: a store in a temporary folder, and one image of a few programs.

The image is made of this machine's shell and what it needs, so no registry and no base image is
asked for. The store is found only by who has our variables, as any user's own settings are.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests.kubernetes.controlplane.machine import install_packages, why_no_real_node

IMAGE = "regatta.test/tiny:1"
_PROGRAMS = ("sh", "sleep", "cat", "env")
#: podman would raise these, which a machine without CAP_SYS_RESOURCE refuses.
_SETTINGS = """\
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1000:1000"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "none"
"""
_STORAGE = '[storage]\ndriver = "overlay"\ngraphroot = "{0}/store"\nrunroot = "{0}/run"\n'


class Podman:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "containers.conf").write_text(_SETTINGS)
        (folder / "storage.conf").write_text(_STORAGE.format(folder))
        #: What the submitting shell has: without it podman neither starts nor has the image.
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "CONTAINERS_CONF": str(folder / "containers.conf"),
            "CONTAINERS_STORAGE_CONF": str(folder / "storage.conf"),
        }

    def __call__(self, *words: str) -> str:
        done = subprocess.run(
            ["podman", *words],
            capture_output=True,
            text=True,
            env=self.environment,
            stdin=subprocess.DEVNULL,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def containers(self) -> list[str]:
        """All that are there, running or not."""
        return self("ps", "--all", "--format", "{{.Names}}").split()

    def make_image(self) -> None:
        archive = self.folder / "tiny.tar"
        with tarfile.open(archive, "w") as packed:
            for file in _files():
                packed.add(os.path.realpath(file), arcname=file)
            entry = tarfile.TarInfo("tmp")
            entry.type, entry.mode = tarfile.DIRTYPE, 0o777
            packed.addfile(entry)
        self("import", str(archive), IMAGE)

    def close(self) -> None:
        self("rm", "--all", "--force", "--time", "0")
        self("rmi", "--all", "--force")
        subprocess.run(["umount", self.folder / "store/overlay"], capture_output=True, check=False)


def open_podman(folder: Path) -> Podman:
    """Skips where there is none. As root on Debian it is installed, as for the real node."""
    if shutil.which("podman") is None and why_no_real_node() is None:
        print("installing podman", file=sys.stderr)
        install_packages()
    if shutil.which("podman") is None or os.geteuid() != 0:
        pytest.skip("jobs in containers need podman, and root to run it here")
    podman = Podman(folder)
    podman.make_image()
    return podman


def _files() -> set[str]:
    """The programs, and the libraries and the loader that they name, where each is looked for."""
    files = set()
    for name in _PROGRAMS:
        program = shutil.which(name)
        assert program is not None, name
        linked = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
        files |= {f"/bin/{name}", *re.findall(r"/\S+", linked)}
    return files
