"""What a control group holds, counts and ends."""

from __future__ import annotations

import os
import signal
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from regatta.engines.local.replicas.hierarchies import find_hierarchies
from regatta.engines.local.supervisor.groups import CannotEnter, Group, offer_controllers
from tests.engines.local.control_groups import PLACES, has_groups, has_limits, inside
from tests.engines.local.runs import alive, eventually

MIB = 1 << 20
SLEEP = "import time; print('up', flush=True); time.sleep(600)"
SPIN = "print('up', flush=True)\nwhile True: pass"
#: Takes memory in steps of 1 MiB, up to what it is told, and says how far it came.
EAT = """
import sys
taken = []
for step in range(int(sys.argv[1])):
    taken.append(bytearray(1 << 20))
print('ate', flush=True)
"""
#: Leaves a handful of processes that fork on and on, each for ten seconds at most.
FORK_ON = """
import os, signal, time
deadline = time.time() + 10
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for _ in range(4):
    if os.fork() == 0:
        while time.time() < deadline:
            if os.fork():
                os._exit(0)
            time.sleep(0.002)
        os._exit(0)
print('up', flush=True)
time.sleep(600)
"""


@pytest.fixture
def name() -> str:
    return f"regatta-test-{uuid.uuid4()}"


def a_group(name: str, memory_bytes: int = 0, cpus: float = 0.0) -> Group:
    group = Group([f"{place}/{name}" for place in PLACES], memory_bytes, cpus)
    group.make()
    return group


@has_limits
def test_who_takes_more_memory_than_the_limit_is_killed_and_that_is_counted(name: str) -> None:
    group, beside = a_group(name, 64 * MIB), a_group(name + "-beside", 64 * MIB)
    with inside(beside, SLEEP) as neighbour, inside(group, EAT, "200") as eater:
        assert eater.wait(60) == -signal.SIGKILL
        assert group.out_of_memory_kills() == 1
        assert group.has_met_its_limit()
        assert neighbour.poll() is None
        assert beside.out_of_memory_kills() == 0
        assert not beside.has_met_its_limit()


@has_limits
@pytest.mark.parametrize("amount", [1, 4096, 65536])
def test_a_limit_in_which_nothing_can_run_has_been_met(name: str, amount: int) -> None:
    """One that was below a page when an older release took the job, say."""
    group = a_group(name, amount)
    with inside(group, SLEEP) as sleeper:
        assert sleeper.wait(60) == -signal.SIGKILL
        assert group.out_of_memory_kills()
        assert group.has_met_its_limit()


@has_limits
def test_who_stays_below_the_limit_is_let_be(name: str) -> None:
    group = a_group(name, 128 * MIB)
    with inside(group, EAT, "32") as eater:
        assert eater.wait(60) == 0
        assert group.out_of_memory_kills() == 0


@has_limits
def test_processor_time_is_bounded_and_counted(name: str) -> None:
    group = a_group(name, cpus=0.25)
    with inside(group, SPIN) as spinner:
        assert spinner.stdout is not None
        spinner.stdout.readline()
        before, began = group.cpu_seconds(), time.monotonic()
        assert before is not None
        time.sleep(2)
        after, took = group.cpu_seconds(), time.monotonic() - began
        assert after is not None
        # It can have had less on a busy machine, never more than its share and one period.
        assert 0 < after - before <= 0.25 * took + 0.15


@has_limits
def test_the_memory_that_is_used_is_counted(name: str) -> None:
    group = a_group(name)
    with inside(group, EAT + "\nimport time; time.sleep(600)", "64") as eater:
        assert eater.stdout is not None
        eater.stdout.readline()
        used = group.memory_used()
        assert used is not None
        assert 64 * MIB < used < 128 * MIB


@has_groups
def test_everybody_in_it_is_killed_at_one_blow_even_if_they_fork_on(name: str) -> None:
    group = a_group(name)
    with inside(group, FORK_ON) as forker:
        assert forker.stdout is not None
        forker.stdout.readline()
        eventually(lambda: len(group.pids()) >= 5)
        assert group.kill()
        eventually(lambda: not group.pids())


@has_groups
def test_what_a_program_hides_in_groups_of_its_own_is_found_and_removed(name: str) -> None:
    group = a_group(name)
    inner = Group([f"{folder}/inner" for folder in group.folders])
    with inside(group, SLEEP):
        inner.make()
        with inside(inner, SLEEP) as hidden:
            assert hidden.pid in group.pids()
            assert hidden.pid in group.kill()
            assert hidden.wait(60) == -signal.SIGKILL
        inner.make()
    assert not any(os.path.exists(folder) for folder in group.folders)


@has_groups
def test_groups_that_lie_a_thousand_deep_are_removed_or_cannot_be_made(name: str) -> None:
    group = a_group(name)
    for folder in group.folders:
        inner = folder
        with suppress(OSError):  # version 2 lets no program go so deep
            for _ in range(1200):
                inner += "/d"
                os.mkdir(inner)
    assert group.pids() == set()
    assert group.remove()
    assert not any(map(os.path.exists, group.folders))


@has_groups
def test_a_group_that_holds_somebody_is_not_removed(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("regatta.engines.local.supervisor.groups.REMOVE_SECONDS", 0.05)
    group = a_group(name)
    with inside(group, SLEEP) as sleeper:
        assert not group.remove()
        assert sleeper.poll() is None


@has_groups
def test_runs_that_are_made_while_others_are_removed_find_their_place(name: str) -> None:
    for turn in range(50):
        first, second = a_group(f"{name}-{turn}"), a_group(f"{name}-{turn}-second")
        assert first.remove()
        second.make()
        assert len(second.folders) == len(PLACES)
        assert second.remove()


def _freezers() -> Iterator[str]:
    """Where processes can be frozen: by version 2 without the newer kill, and by version 1."""
    found = find_hierarchies(
        Path("/proc/self/mountinfo").read_text(), Path("/proc/self/cgroup").read_text()
    )
    for hierarchy in found:
        if os.access(hierarchy.top, os.W_OK):
            if hierarchy.is_version_2:
                yield hierarchy.top
            if "freezer" in hierarchy.controllers:
                yield hierarchy.top


@pytest.mark.parametrize("top", list(_freezers()) or [""])
def test_where_there_is_no_kill_they_are_frozen_and_then_killed(
    name: str, top: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not top:
        pytest.skip("this user can freeze nothing here")
    group = Group([f"{top}/{name}"])
    group.make()
    put = Group._put
    monkeypatch.setattr(
        Group, "_put", lambda self, file, value: file != "cgroup.kill" and put(self, file, value)
    )
    with inside(group, FORK_ON) as forker:
        assert forker.stdout is not None
        forker.stdout.readline()
        eventually(lambda: len(group.pids()) >= 5)
        group.kill()
        eventually(lambda: not alive(forker.pid))
        eventually(lambda: not group.pids())


# -- without the kernel: what is written where ----------------------------------------------------


def test_version_2_gets_its_limits_in_its_own_files(tmp_path: Path) -> None:
    """A plain folder stands for the group: not every machine has version 2's controllers."""
    folder = a_plain_folder(
        tmp_path, "memory.max", "memory.swap.max", "memory.oom.group", "cpu.max"
    )
    group = Group([str(folder)], 64 * MIB, 0.5)
    group.make()
    assert group.only_counted == []
    assert contents(folder) == {
        "memory.max": "67108864",
        "memory.swap.max": "0",
        "memory.oom.group": "1",
        "cpu.max": "50000 100000",
    }


def test_version_1_gets_its_limits_in_its_own_files(tmp_path: Path) -> None:
    """A plain folder stands for each group, so that the order of what is written shows."""
    memory = a_plain_folder(tmp_path / "a", "memory.limit_in_bytes", "memory.memsw.limit_in_bytes")
    cpu = a_plain_folder(tmp_path / "b", "cpu.cfs_period_us", "cpu.cfs_quota_us")
    group = Group([str(memory), str(cpu)], 64 * MIB, 0.001)
    group.make()
    assert group.only_counted == []
    assert contents(memory) == {
        "memory.limit_in_bytes": "67108864",
        "memory.memsw.limit_in_bytes": "67108864",
    }
    assert contents(cpu) == {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "1000"}


def test_limits_that_nothing_holds_are_only_counted(tmp_path: Path) -> None:
    """A plain folder stands for a group without controllers."""
    group = Group([str(a_plain_folder(tmp_path, "memory.max"))], 64 * MIB, 0.5)
    group.make()
    assert group.only_counted == ["cpu"]
    nowhere = Group([], 64 * MIB, 0.5)
    nowhere.make()
    assert nowhere.only_counted == ["cpu", "memory"]


def test_the_counters_of_version_2_are_read(tmp_path: Path) -> None:
    """A plain folder holds what such a kernel says."""
    folder = a_plain_folder(tmp_path)
    for file, text in {
        "cpu.stat": "usage_usec 2500000\nuser_usec 1\n",
        "memory.current": "1000000\n",
        "memory.stat": "anon 5\ninactive_file 400000\n",
        "memory.events": "low 0\nhigh 0\nmax 7\noom 1\noom_kill 3\n",
    }.items():
        (folder / file).write_text(text)
    group = Group([str(folder)], 64 * MIB)
    assert group.cpu_seconds() == 2.5
    assert group.memory_used() == 600_000
    assert group.out_of_memory_kills() == 3
    assert group.has_met_its_limit()


def test_controllers_are_handed_on_to_the_groups_below(tmp_path: Path) -> None:
    """A plain file stands for the kernel's, which would take them one by one, too."""
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu io memory pids\n")
    (tmp_path / "cgroup.subtree_control").write_text("memory\n")
    offer_controllers(str(tmp_path))
    assert (tmp_path / "cgroup.subtree_control").read_text().startswith("+cpu")


def test_a_folder_that_takes_no_process_is_named(tmp_path: Path) -> None:
    with pytest.raises(CannotEnter) as refused:
        Group([str(tmp_path)]).enter()
    assert refused.value.folder == str(tmp_path)


def a_plain_folder(folder: Path, *files: str) -> Path:
    group = folder / "regatta" / "run"
    group.mkdir(parents=True)
    for file in files:
        (group / file).touch()
    return group


def contents(folder: Path) -> dict[str, str]:
    return {file.name: file.read_text() for file in folder.iterdir()}
