"""What this user can have of control groups on this machine, asked once, of the kernel itself."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from regatta.engines.local.replicas.hierarchies import find_hierarchies, places
from regatta.engines.local.supervisor.groups import Group
from tests.engines.local.runs import eventually

#: Anybody but root; it needs no name.
SOMEBODY = 65534

PLACES = places()
#: Everything a replica's group can do: end, count, and bound memory and processor time.
has_groups = pytest.mark.skipif(not PLACES, reason="this user can have no control groups here")


def bounds() -> bool:
    group = Group([f"{place}/regatta-test-{os.getpid()}" for place in PLACES], 1 << 30, 1.0)
    group.make()
    group.remove()
    return bool(PLACES) and not group.only_counted


has_limits = pytest.mark.skipif(
    not bounds(), reason="this user can have no control groups with limits here"
)


def version_2() -> str | None:
    """The top of that hierarchy, where root may make groups in it."""
    found = find_hierarchies(
        Path("/proc/self/mountinfo").read_text(), Path("/proc/self/cgroup").read_text()
    )
    tops = [hierarchy.top for hierarchy in found if hierarchy.is_version_2]
    return tops[0] if tops and os.geteuid() == 0 and os.access(tops[0], os.W_OK) else None


def freezers() -> str | None:
    """The top of the hierarchy of version 1 that freezes, where root may make groups in it."""
    found = find_hierarchies(
        Path("/proc/self/mountinfo").read_text(), Path("/proc/self/cgroup").read_text()
    )
    tops = [hierarchy.top for hierarchy in found if "freezer" in hierarchy.controllers]
    return tops[0] if tops and os.geteuid() == 0 and os.access(tops[0], os.W_OK) else None


@pytest.fixture
def ice() -> Iterator[Path]:
    """A group in which everybody is frozen, at the end of which all are let go."""
    top = freezers()
    if top is None:
        pytest.skip("this user cannot make a group of version 1 that freezes")
    folder = Path(top) / f"regatta-test-{uuid.uuid4()}"
    folder.mkdir()
    (folder / "freezer.state").write_text("FROZEN")
    yield folder
    (folder / "freezer.state").write_text("THAWED")
    eventually(lambda: not (folder / "cgroup.procs").read_text().split())
    folder.rmdir()


def become_somebody(uid: int, group: Path | None = None) -> list[str]:
    """Words before a command that root runs as another user, in a control group."""
    program = (
        "import os, sys; group, uid, *command = sys.argv[1:]; "
        "group and open(group + '/cgroup.procs', 'w').write('0'); "
        "os.setgroups([]); os.setgid(int(uid)); os.setuid(int(uid)); os.execvp(command[0], command)"
    )
    return [sys.executable, "-I", "-S", "-c", program, str(group or ""), str(uid)]


@contextmanager
def inside(
    group: Group, program: str, *arguments: str, keep: bool = False
) -> Iterator[subprocess.Popen[str]]:
    """A Python program that entered the group before it began; then the group goes, unless
    somebody wants to keep it."""
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", program, *arguments],
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=group.enter,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()
        if not keep:
            eventually(lambda: not group.kill())
            assert group.remove()


@pytest.fixture
def handed_over() -> Iterator[Path]:
    """A group whose owner may make others in it."""
    top = version_2()
    if top is None:
        pytest.skip("this user cannot make a group of version 2 and hand it to somebody")
    folder = Path(top) / f"regatta-test-{uuid.uuid4()}"
    folder.mkdir()
    for path in (folder, *map(folder.joinpath, ("cgroup.procs", "cgroup.subtree_control"))):
        os.chown(path, SOMEBODY, SOMEBODY)
    yield folder
    eventually(lambda: not Group([str(folder)]).kill())
    assert Group([str(folder)]).remove()
