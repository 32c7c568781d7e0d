"""`make bench`: every measure, one table."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks import (
    first_line,
    memory,
    months,
    startup,
    strangers,
    team_records,
    team_watch,
    throughput,
    watch_cost,
)
from benchmarks.measure import REGATTA, Row, environment

MEASURES = {
    "start-up": startup.measure,
    "first line": first_line.measure,
    "throughput": throughput.measure,
    "memory": memory.measure,
    "watch cost": watch_cost.measure,
    "months": months.measure,
    "strangers": strangers.measure,
    "team records": team_records.measure,
    "team watch": team_watch.measure,
}


def main() -> None:
    wanted = sys.argv[1:] or list(MEASURES)
    with tempfile.TemporaryDirectory(prefix="regatta-bench-") as name:
        folder = Path(name)
        env = environment(folder / "home")
        os.environ.update(env)  # for measures that use the client in this process
        rows: list[Row] = []
        try:
            for title in wanted:
                print(f"measuring {title} ...", file=sys.stderr, flush=True)
                rows += MEASURES[title](folder, env)
        finally:
            subprocess.run([REGATTA, "server", "stop"], env=env, check=False, capture_output=True)
    print(f"{os.cpu_count()} cores, Python {platform.python_version()}, {platform.system()}\n")
    print("| what | Regatta | beside it | who | ratio |")
    print("|---|---|---|---|---|")
    for row in rows:
        ratio = f"{row.ratio:.2f}" if row.ratio is not None else ""
        print(f"| {row.what} | {row.ours} | {row.theirs} | {row.peer} | {ratio} |")


if __name__ == "__main__":
    main()
