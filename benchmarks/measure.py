"""Fair timing on a noisy machine: interleaved runs, medians, and ratios within one run."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
REGATTA = str(ROOT / ".venv/bin/regatta")
TORCHX = str(ROOT / ".venv-bench/bin/torchx")
BENCH_PYTHON = str(ROOT / ".venv-bench/bin/python")


@dataclass(frozen=True)
class Row:
    what: str
    ours: str
    theirs: str
    peer: str
    ratio: float | None = None


def interleaved(runs: int, *contenders: Callable[[], float]) -> list[float]:
    """Median of each contender; taking turns, so that a slow moment strikes all alike, and who
    goes first does so as often as not."""
    samples: list[list[float]] = [[] for _ in contenders]
    for number in range(runs):
        turns = list(zip(samples, contenders, strict=True))
        for kept, contender in turns if number % 2 else reversed(turns):
            kept.append(contender())
    return [statistics.median(kept) for kept in samples]


def until_line(command: Sequence[str], marker: str, env: dict[str, str]) -> float:
    """Seconds from starting a command until it prints a line with the marker."""
    start = time.perf_counter()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env
    ) as process:
        assert process.stdout is not None
        seen = []
        for line in process.stdout:
            seen.append(line)
            if marker in line:
                took = time.perf_counter() - start
                process.stdout.read()
                return took
    raise RuntimeError(f"{' '.join(command)} never printed {marker!r}:\n{''.join(seen)}")


def whole(command: Sequence[str], env: dict[str, str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, env=env, check=True, capture_output=True)
    return time.perf_counter() - start


def proportional_memory(pid: int) -> int:
    """Bytes a process costs: its own pages, and its share of those it shares."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"no Pss for process {pid}")


def processor_seconds(pid: int) -> float:
    """What a process has used so far, all its threads together."""
    after_the_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    ticks = int(after_the_name[11]) + int(after_the_name[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def children_of(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task")
    return [
        int(child) for task in tasks.iterdir() for child in (task / "children").read_text().split()
    ]


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms"


def environment(home: Path) -> dict[str, str]:
    kept = {key: os.environ[key] for key in ("PATH", "HOME", "LANG") if key in os.environ}
    return {**kept, "REGATTA_HOME": str(home), "REGATTA_PODS": "500", "NO_COLOR": "1"}
