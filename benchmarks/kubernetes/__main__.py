"""`make bench-kube`: every measure on a cluster, one table.

    python -m benchmarks.kubernetes [MEASURE...] [--quick]

Everything it compares with is built from source on first use (minutes). About half an hour on two
cores; `--quick` shows in a few minutes that everything works, with sizes that say nothing.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Callable

from tests.kubernetes.controlplane.build import build
from tests.kubernetes.controlplane.programs import KUBERNETES_VERSION

from benchmarks.kubernetes import barrier, ceiling, scale, side_by_side
from benchmarks.kubernetes.contenders import Shape
from benchmarks.measure import Row

SHAPE = Shape(servers=4, workers=6)
Measure = Callable[[bool], list[Row]]

MEASURES: dict[str, Measure] = {
    "side-by-side": lambda quick: side_by_side.measure(
        5 if quick else 50, SHAPE, 1 if quick else 3
    ),
    "ceiling": lambda quick: ceiling.measure(5 if quick else 50, SHAPE, 2 if quick else 5),
    "scale": lambda quick: scale.measure(20 if quick else 500, SHAPE, 5 if quick else 60),
    "barrier": lambda quick: barrier.measure(1 if quick else 5),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.kubernetes", description=__doc__)
    parser.add_argument("measures", nargs="*", metavar="MEASURE", help=", ".join(MEASURES))
    parser.add_argument("--quick", action="store_true", help="small sizes: does it all work?")
    asked = parser.parse_args()
    unknown = set(asked.measures) - set(MEASURES)
    if unknown:
        parser.error(f"no measure is called {', '.join(unknown)}; there are {', '.join(MEASURES)}")
    build("etcd", "kubernetes", "kwok", "upstream-operator", "training-operator")
    rows: list[Row] = []
    for title in asked.measures or MEASURES:
        print(f"measuring {title} ...", file=sys.stderr, flush=True)
        rows += MEASURES[title](asked.quick)
    system = f"{os.cpu_count()} cores, Python {platform.python_version()}, {platform.system()}"
    print(f"{system}, Kubernetes {KUBERNETES_VERSION}\n")
    print("| what | Regatta | beside it | who | ratio |")
    print("|---|---|---|---|---|")
    for row in rows:
        ratio = f"{row.ratio:.2f}" if row.ratio is not None else ""
        print(f"| {row.what} | {row.ours} | {row.theirs} | {row.peer} | {ratio} |")


if __name__ == "__main__":
    main()
