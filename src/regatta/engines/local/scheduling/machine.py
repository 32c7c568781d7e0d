"""What this machine has to give to jobs, and how much of it is in use right now.

Containers and cgroups often give a process less than the hardware shows; what counts is what the
engine itself may use. Each number can be set by hand: REGATTA_CPUS, REGATTA_MEMORY, REGATTA_GPUS
and REGATTA_PODS.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import msgspec

from regatta.api.errors import BadSetting
from regatta.api.quantity import parse_cpu, parse_memory
from regatta.engines.local.scheduling.scheduler import Need

N = TypeVar("N", int, float)

#: As many as a Kubernetes node takes by default.
POD_CAPACITY = 110


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    cpus: float
    memory: int
    #: Device numbers as CUDA_VISIBLE_DEVICES wants them.
    gpus: tuple[str, ...] = ()
    pods: int = POD_CAPACITY

    @property
    def capacity(self) -> Need:
        return Need(round(self.cpus * 1000), self.memory, len(self.gpus), self.pods)


class Load(msgspec.Struct, frozen=True):
    """Of the whole machine, at one moment."""

    at: float = float("-inf")
    #: Ticks since it started, all cores together.
    busy: int = 0
    ticks: int = 0
    memory_used: int = 0

    def cpu_percent_since(self, before: Load) -> float:
        """Of all cores."""
        return 100 * (self.busy - before.busy) / max(1, self.ticks - before.ticks)


def find_machine(settings: Mapping[str, str] = os.environ) -> Machine:
    """Look once; what is set by hand wins over what is found."""
    return Machine(
        cpus=_setting(settings, "REGATTA_CPUS", parse_cpu, "2 or 500m") or usable_cpus(),
        memory=_setting(settings, "REGATTA_MEMORY", parse_memory, "8Gi") or usable_memory(),
        gpus=_gpu_setting(settings.get("REGATTA_GPUS")),
        pods=_setting(settings, "REGATTA_PODS", int, "110") or POD_CAPACITY,
    )


def usable_cpus(cgroup: Path = Path("/sys/fs/cgroup")) -> float:
    """The cores this process may be scheduled on, less where a cgroup grants less time."""
    cpus = float(
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    quota, period = _cpu_quota(cgroup)
    return min(cpus, quota / period) if quota > 0 and period > 0 else cpus


def usable_memory(cgroup: Path = Path("/sys/fs/cgroup")) -> int:
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limits = [_read_int(cgroup / "memory.max"), _read_int(cgroup / "memory/memory.limit_in_bytes")]
    return min([total, *(limit for limit in limits if limit > 0)])


def find_gpus() -> tuple[str, ...]:
    """NVIDIA devices by number; none where the driver or its library is absent."""
    try:
        import pynvml
    except ImportError:
        return ()
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return ()
    try:
        return tuple(str(i) for i in range(pynvml.nvmlDeviceGetCount()))
    except pynvml.NVMLError:
        return ()
    finally:
        pynvml.nvmlShutdown()


def load(proc: Path = Path("/proc")) -> Load:
    ticks = [int(word) for word in (proc / "stat").read_text().partition("\n")[0].split()[1:9]]
    idle = ticks[3] + ticks[4]  # nothing to do, or nothing but waiting for a disk
    amounts = dict(line.split(":") for line in (proc / "meminfo").read_text().splitlines())
    total, free = (int(amounts[key].split()[0]) for key in ("MemTotal", "MemAvailable"))
    return Load(time.monotonic(), sum(ticks) - idle, sum(ticks), (total - free) * 1024)


def _gpu_setting(value: str | None) -> tuple[str, ...]:
    """A count, or a list of device numbers; empty or 0 for none; unset looks at the machine."""
    if value is None:
        return find_gpus()
    value = value.strip()
    if "," in value:
        return tuple(part.strip() for part in value.split(",") if part.strip())
    if not value:
        return ()
    if not value.isdigit():
        raise BadSetting(
            f"REGATTA_GPUS is {value!r}; it must be a number of GPUs, or their device numbers "
            "with commas, as 0,2,"
        )
    return tuple(str(i) for i in range(int(value)))


def _setting(
    settings: Mapping[str, str], name: str, parse: Callable[[str], N], example: str
) -> N | None:
    value = settings.get(name, "").strip()
    if not value:
        return None
    try:
        amount = parse(value)
    except ValueError:
        amount = None
    if amount is None or amount <= 0:
        raise BadSetting(f"{name} is {value!r}; it must be an amount above zero, as {example}")
    return amount


def _cpu_quota(cgroup: Path) -> tuple[float, float]:
    try:
        quota, period = (cgroup / "cpu.max").read_text().split()
        return (0.0 if quota == "max" else float(quota)), float(period)
    except (OSError, ValueError):
        return (
            float(_read_int(cgroup / "cpu/cpu.cfs_quota_us")),
            float(_read_int(cgroup / "cpu/cpu.cfs_period_us")),
        )


def _read_int(path: Path) -> int:
    try:
        return int(path.read_text())
    except (OSError, ValueError):  # absent, or the word `max`
        return 0
