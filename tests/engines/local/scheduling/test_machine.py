"""What the machine has: found, limited by cgroups, or set by hand."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from regatta.api.errors import BadSetting
from regatta.engines.local.scheduling.machine import (
    POD_CAPACITY,
    find_machine,
    load,
    usable_cpus,
    usable_memory,
)

GIB = 1 << 30


def test_what_is_set_by_hand_is_what_counts() -> None:
    machine = find_machine(
        {
            "REGATTA_CPUS": "1500m",
            "REGATTA_MEMORY": "2Gi",
            "REGATTA_GPUS": "2",
            "REGATTA_PODS": "7",
        }
    )
    assert (machine.cpus, machine.memory, machine.gpus, machine.pods) == (
        1.5,
        2 * GIB,
        ("0", "1"),
        7,
    )
    assert machine.capacity.millicores == 1500


@pytest.mark.parametrize(
    ("setting", "gpus"),
    [("", ()), ("0", ()), ("1", ("0",)), ("1,3", ("1", "3")), ("2,", ("2",))],
)
def test_gpus_are_a_count_or_device_numbers(setting: str, gpus: tuple[str, ...]) -> None:
    assert find_machine({"REGATTA_GPUS": setting}).gpus == gpus


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("REGATTA_CPUS", "many"),
        ("REGATTA_CPUS", "0"),
        ("REGATTA_MEMORY", "-1Gi"),
        ("REGATTA_PODS", "1.5"),
        ("REGATTA_GPUS", "all"),
    ],
)
def test_a_setting_that_is_no_amount_is_named(name: str, value: str) -> None:
    with pytest.raises(BadSetting, match=f"{name} is '{value}'"):
        find_machine({name: value})


def test_without_settings_it_is_what_this_process_may_use() -> None:
    machine = find_machine({})
    assert 0 < machine.cpus <= len(os.sched_getaffinity(0))
    assert machine.memory > 0
    assert machine.pods == POD_CAPACITY


def test_a_cgroup_that_grants_less_is_believed(tmp_path: Path) -> None:
    (tmp_path / "cpu.max").write_text("50000 100000\n")
    (tmp_path / "memory.max").write_text(f"{64 << 20}\n")
    assert usable_cpus(tmp_path) == 0.5
    assert usable_memory(tmp_path) == 64 << 20


def test_a_cgroup_without_limits_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "cpu.max").write_text("max 100000\n")
    (tmp_path / "memory.max").write_text("max\n")
    assert usable_cpus(tmp_path) == len(os.sched_getaffinity(0))
    assert usable_memory(tmp_path) > 64 << 20


def test_the_older_kind_of_cgroup_is_read_too(tmp_path: Path) -> None:
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text("25000\n")
    (tmp_path / "cpu" / "cpu.cfs_period_us").write_text("100000\n")
    assert usable_cpus(tmp_path) == 0.25


def test_live_use_is_what_happened_between_two_readings(tmp_path: Path) -> None:
    assert load().memory_used > 0
    (tmp_path / "meminfo").write_text("MemTotal: 1000 kB\nMemFree: 1 kB\nMemAvailable: 600 kB\n")
    readings = []
    for idle in (400, 425):  # of 500 and then 600 ticks; 50 of either were spent waiting for disks
        words = (100, 0, idle - 300, idle - 50, 50, 0, 0, 0, 0, 0)
        (tmp_path / "stat").write_text(f"cpu  {' '.join(map(str, words))}\ncpu0 1 2\n")
        readings.append(load(tmp_path))
    assert readings[1].memory_used == 400 * 1024
    assert readings[1].cpu_percent_since(readings[0]) == pytest.approx(50.0)
