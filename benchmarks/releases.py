"""This checkout beside another one, in the same run: what a change made faster or slower.

    python -m benchmarks.releases CHECKOUT [MEASURE...]

CHECKOUT is another release's, with its `.venv` installed. Takes turns, so that a slow moment
strikes both; a ratio below 1 is better than before.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.jobs import task_job
from benchmarks.measure import (
    REGATTA,
    Row,
    environment,
    interleaved,
    milliseconds,
    until_line,
    whole,
)
from benchmarks.watch_cost import FEW, MANY, change_cost

RUNS = 301
#: Starting one takes a second.
SERVERS = 31
#: The other release may take seconds for each.
FEW_CHANGES = 5


def start_up(other: str, folder: Path) -> list[Row]:
    with _served(REGATTA, folder / "ours") as ours, _served(other, folder / "theirs") as theirs:
        mine, before = interleaved(
            RUNS, lambda: whole([REGATTA, "get"], ours), lambda: whole([other, "get"], theirs)
        )
    return [_row("`regatta get`", mine, before)]


def first_line(other: str, folder: Path) -> list[Row]:
    marker = "first-line-of-the-replica"
    job = task_job(folder, "first-line", ["sh", "-c", f"echo {marker}; sleep 0.2"])

    def run(regatta: str, env: dict[str, str]) -> float:
        return until_line([regatta, "run", str(job), "--replace"], marker, env)

    with _served(REGATTA, folder / "ours") as ours, _served(other, folder / "theirs") as theirs:
        mine, before = interleaved(RUNS, lambda: run(REGATTA, ours), lambda: run(other, theirs))
    return [_row("submit → first line", mine, before)]


def server_start(other: str, folder: Path) -> list[Row]:
    """Until it answers, without a job; and what its imports alone cost, in processor time."""

    def start(regatta: str, home: Path) -> float:
        env = environment(home)
        took = whole([regatta, "server", "start"], env)
        subprocess.run([regatta, "server", "stop"], env=env, check=True, capture_output=True)
        return took

    def load(regatta: str) -> float:
        python = str(Path(regatta).with_name("python"))
        before = os.times()
        subprocess.run([python, "-c", "import regatta.server.run"], check=True)
        after = os.times()
        used = after.children_user + after.children_system
        return used - before.children_user - before.children_system

    mine, before = interleaved(
        SERVERS, lambda: start(REGATTA, folder / "ours"), lambda: start(other, folder / "theirs")
    )
    loads, loaded = interleaved(SERVERS, lambda: load(REGATTA), lambda: load(other))
    return [
        _row("`regatta server start`", mine, before),
        _row("processor time of a server's imports", loads, loaded),
    ]


def watch_cost(other: str, folder: Path) -> list[Row]:
    rows = []
    for finished, changes in ((FEW, 200), (MANY, FEW_CHANGES)):
        env = environment(folder / "unused")
        mine = change_cost(REGATTA, folder / f"ours-{finished}", env, finished)
        before = change_cost(other, folder / f"theirs-{finished}", env, finished, changes)
        what = f"processor time of a change seen by a watcher, {finished:,} finished jobs"
        rows.append(_row(what, mine, before, digits=1))
    return rows


MEASURES: dict[str, Callable[[str, Path], list[Row]]] = {
    "start-up": start_up,
    "first-line": first_line,
    "server-start": server_start,
    "watch-cost": watch_cost,
}


def main() -> None:
    other = str(Path(sys.argv[1]).resolve() / ".venv/bin/regatta")
    rows: list[Row] = []
    for title in sys.argv[2:] or MEASURES:
        print(f"measuring {title} ...", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory(prefix="regatta-bench-") as folder:
            rows += MEASURES[title](other, Path(folder))
    print("| what | this | before | ratio |")
    print("|---|---|---|---|")
    for row in rows:
        print(f"| {row.what} | {row.ours} | {row.theirs} | {row.ratio:.2f} |")


@contextmanager
def _served(regatta: str, home: Path) -> Iterator[dict[str, str]]:
    env = environment(home)
    subprocess.run([regatta, "server", "start"], env=env, check=True, capture_output=True)
    try:
        yield env
    finally:
        subprocess.run([regatta, "delete", "--all"], env=env, check=False, capture_output=True)
        subprocess.run([regatta, "server", "stop"], env=env, check=False, capture_output=True)


def _row(what: str, mine: float, before: float, digits: int = 0) -> Row:
    if digits:
        return Row(
            what,
            f"{mine * 1000:.{digits}f} ms",
            f"{before * 1000:.{digits}f} ms",
            "",
            mine / before,
        )
    return Row(what, milliseconds(mine), milliseconds(before), "", mine / before)


if __name__ == "__main__":
    main()
