"""Where control groups may be made, told from what the kernel shows of its hierarchies."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from regatta.engines.local.replicas.hierarchies import Hierarchy, choose, find_hierarchies
from regatta.engines.local.supervisor.groups import Group
from tests.engines.local.control_groups import (
    SOMEBODY,
    become_somebody,
    handed_over,
    inside,
)

__all__ = ["handed_over"]

TOP = "rw,relatime shared:9 - cgroup"


def two(top: str, own: str) -> Hierarchy:
    return Hierarchy(top=top, own=own)


def one(names: str, top: str, own: str) -> Hierarchy:
    return Hierarchy(controllers=frozenset(names.split(",")), top=top, own=own)


@pytest.mark.parametrize(
    ("mountinfo", "cgroup", "found"),
    [
        pytest.param(
            f"30 23 0:26 / /sys/fs/cgroup {TOP}2 cgroup2 rw,nsdelegate\n"
            "31 23 0:27 / /tmp rw - tmpfs tmpfs rw\n",
            "0::/user.slice/user-1000.slice/session-3.scope\n",
            [two("/sys/fs/cgroup", "/sys/fs/cgroup/user.slice/user-1000.slice/session-3.scope")],
            id="version 2",
        ),
        pytest.param(
            f"32 31 0:26 / /cg/cpu,cpuacct {TOP} cgroup rw,cpu,cpuacct\n"
            f"33 31 0:27 / /cg/memory {TOP} cgroup rw,memory\n"
            f"34 31 0:28 / /cg/systemd {TOP} cgroup rw,xattr,name=systemd\n"
            f"35 31 0:29 / /cg/unified {TOP}2 cgroup2 rw\n",
            "4:name=systemd:/a.service\n3:memory:/a b\n2:cpu,cpuacct:/\n0::/a.service\n",
            [
                one("cpu,cpuacct", "/cg/cpu,cpuacct", "/cg/cpu,cpuacct"),
                one("memory", "/cg/memory", "/cg/memory/a b"),
                one("name=systemd", "/cg/systemd", "/cg/systemd/a.service"),
                two("/cg/unified", "/cg/unified/a.service"),
            ],
            id="both versions",
        ),
        pytest.param(
            f"33 31 0:27 /docker/c1 /cg/memory {TOP} cgroup rw,memory\n",
            "3:memory:/docker/c1/inner\n",
            [one("memory", "/cg/memory", "/cg/memory/inner")],
            id="a container that sees its own part of version 1",
        ),
        pytest.param(
            f"30 23 0:26 /../.. /my\\040cg {TOP}2 cgroup2 rw\n",
            "0::/\n",
            [two("/my cg", "/my cg")],
            id="a namespace entered from outside",
        ),
        pytest.param("31 23 0:27 / /tmp rw - tmpfs tmpfs rw\n", "0::/\n", [], id="not mounted"),
    ],
)
def test_the_hierarchies_of_this_machine(
    mountinfo: str, cgroup: str, found: list[Hierarchy]
) -> None:
    assert find_hierarchies(mountinfo, cgroup) == found


def test_what_nobody_may_write_to_serves_nobody(tmp_path: Path) -> None:
    away = str(tmp_path / "away")
    assert choose([two(away, away), one("memory", away, away)]) == ()


def test_each_controller_is_taken_from_the_version_that_has_it(tmp_path: Path) -> None:
    """Plain folders stand for hierarchies: no machine has all of these at once."""
    unified, memory, cpu, freezer = (a_group(tmp_path / name) for name in "umcf")
    hierarchies = [
        one("memory", memory, memory),
        one("cpu,cpuacct", cpu, cpu),
        one("freezer", freezer, freezer),
        one("name=systemd", cpu, cpu),
    ]
    # A plain folder can be neither killed nor frozen: so the freezer is needed.
    places = choose([two(unified, unified), *hierarchies])
    assert places == tuple(f"{base}/regatta" for base in (unified, memory, cpu, freezer))
    (Path(unified) / "cgroup.subtree_control").write_text("cpu memory pids\n")
    places = choose([two(unified, unified), *hierarchies])
    assert places == tuple(f"{base}/regatta" for base in (unified, freezer))
    places = choose(hierarchies[:2])
    assert places == tuple(f"{base}/regatta" for base in (memory, cpu))


def a_group(folder: Path) -> str:
    folder.mkdir()
    (folder / "cgroup.procs").touch()
    return str(folder)


# -- a group that was handed to somebody, on the real version 2 ------------------------------------

#: Which folders it would use, and which group it is in by then.
TELL = """
import sys
sys.path[:0] = sys.argv[1].split(":")
from regatta.engines.local.replicas.hierarchies import places
print(*[place for place in places()])
print(open("/proc/self/cgroup").read().rpartition("0::")[2].strip())
"""


def told_inside(group: Path, beside: bool = False) -> list[str]:
    """`beside`: somebody who is not ours is in the group, too."""
    python = f"/usr/bin/python3.{sys.version_info.minor}"
    command = [*become_somebody(SOMEBODY, group), python, "-c", TELL, ":".join(sys.path)]
    with inside(Group([str(group)] if beside else []), "import time; time.sleep(60)", keep=True):
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")
    if "Permission" in done.stderr or "No such file" in done.stderr or "No module" in done.stderr:
        pytest.skip(f"user {SOMEBODY} may not read this checkout, or has no interpreter for it")
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_server_alone_in_a_group_of_its_owner_moves_to_the_edge_of_it(handed_over: Path) -> None:
    places, group = told_inside(handed_over)
    assert places == f"{handed_over}/regatta"
    assert group == f"/{handed_over.name}/regatta.server"


def test_the_server_after_it_finds_the_same_place(handed_over: Path) -> None:
    edge = handed_over / "regatta.server"
    told_inside(handed_over)
    places, group = told_inside(edge)
    assert places == f"{handed_over}/regatta"
    assert group == f"/{handed_over.name}/regatta.server"


def test_others_in_the_group_stay_where_they_are(handed_over: Path) -> None:
    # No limits then, but groups all the same.
    places, group = told_inside(handed_over, beside=True)
    assert places == f"{handed_over}/regatta"
    assert group == f"/{handed_over.name}"


def test_a_group_that_systemd_hands_over_is_the_servers_with_all_in_it(handed_over: Path) -> None:
    os.setxattr(handed_over, "user.delegate", b"1")
    places, group = told_inside(handed_over, beside=True)
    assert places == f"{handed_over}/regatta"
    assert group == f"/{handed_over.name}/regatta.server"
