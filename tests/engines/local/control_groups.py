"""What this user can have of control groups on this machine, asked once, of the kernel itself."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from regatta.engines.local.replicas.hierarchies import find_hierarchies, places
from regatta.engines.local.supervisor.groups import Group
from tests.engines.local.runs import eventually

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


@contextmanager
def inside(group: Group, program: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A Python program that entered the group before it began."""
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
        eventually(lambda: not group.kill())
        assert group.remove()
