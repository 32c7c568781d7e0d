"""What a replica leaves in an emptyDir volume goes with its job, or the command says what stays.

Root may remove anything: where root runs this, the server gives up that right.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.doors import Regatta, eventually, shell_job
from tests.engines.local.runs import CAN_MOUNT, HAS_NAMESPACES

pytestmark = pytest.mark.skipif(
    not HAS_NAMESPACES, reason="this machine gives neither mount nor user namespaces to this user"
)


class AsAnyUser(Regatta):
    """The command without root's right to write where the owner may not."""

    def command(self, *words: str) -> list[str]:
        plain = super().command(*words)
        if os.geteuid() != 0:
            return plain
        return ["setpriv", "--bounding-set=-dac_override,-dac_read_search", *plain]


@pytest.fixture
def regatta(tmp_path: Path) -> Iterator[Regatta]:
    if os.geteuid() == 0 and shutil.which("setpriv") is None:
        pytest.skip("setpriv is missing")
    regatta = AsAnyUser(tmp_path)
    yield regatta
    regatta.clean()


def with_scratch(name: str, script: str) -> str:
    document = yaml.safe_load(shell_job(name, script))
    pod = document["spec"]["worker"]["template"]["spec"]
    pod["volumes"] = [{"name": "scratch", "emptyDir": {}}]
    pod["containers"][0]["volumeMounts"] = [{"name": "scratch", "mountPath": "/scratch"}]
    return yaml.safe_dump(document)


def test_a_folder_that_its_owner_may_not_write_to_goes_with_the_job(regatta: Regatta) -> None:
    script = "mkdir -p /scratch/in; touch /scratch/in/file; chmod 555 /scratch/in"
    assert regatta("run", "-", stdin=with_scratch("sealed", script)).code == 0
    jobs = regatta.files.folder / "jobs"
    eventually(lambda: not list(jobs.glob("*/pods/*/runs/*/volumes")), "the end of its scratch")
    script += "; exec sleep 600"
    assert regatta("run", "-d", "-", stdin=with_scratch("live", script)).code == 0
    eventually(lambda: list(jobs.glob("*/pods/*/runs/*/volumes/scratch/in/file")), "its file")
    said = regatta("delete", "sealed", "live")
    assert (said.code, said.out) == (0, "job sealed deleted\njob live deleted\n")
    assert list(jobs.iterdir()) == []


@pytest.mark.skipif(not CAN_MOUNT, reason="only root can make what root cannot remove")
def test_a_delete_that_leaves_something_says_what_and_fails(regatta: Regatta) -> None:
    script = "mkdir /scratch/held; exec sleep 600"
    assert regatta("run", "-d", "-", stdin=with_scratch("held", script)).code == 0
    found = regatta.files.folder / "jobs"
    (place,) = eventually(
        lambda: list(found.glob("*/pods/*/runs/*/volumes/scratch/held")), "its folder"
    )
    subprocess.run(["mount", "-t", "tmpfs", "regatta-test", place], check=True)
    try:
        said = regatta("delete", "held")
        assert said.code == 1
        assert f"job held is not gone yet: {place} cannot be removed" in said.err
        assert "Terminating" in regatta("get").out
        assert str(place) in regatta("get").err
        assert str(place) in regatta("server", "status").err
    finally:
        subprocess.run(["umount", place], check=True)
    eventually(lambda: not regatta("get").out, "the end of the job")
