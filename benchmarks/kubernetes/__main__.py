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
from typing import NamedTuple

from tests.kubernetes.controlplane.build import build
from tests.kubernetes.controlplane.programs import KUBERNETES_VERSION

from benchmarks.kubernetes import barrier, ceiling, http, scale, side_by_side
from benchmarks.kubernetes.contenders import Shape
from benchmarks.measure import Row

SHAPE = Shape(servers=4, workers=6)
CLUSTER = ("etcd", "kubernetes", "kwok")
PEERS = ("upstream-operator", "training-operator")


class Measure(NamedTuple):
    #: What it runs, and so what is built first where it is missing.
    programs: tuple[str, ...]
    rows: Callable[[bool], list[Row]]


MEASURES = {
    "side-by-side": Measure(
        (*CLUSTER, *PEERS),
        lambda quick: side_by_side.measure(5 if quick else 50, SHAPE, 1 if quick else 3),
    ),
    "ceiling": Measure(
        CLUSTER, lambda quick: ceiling.measure(5 if quick else 50, SHAPE, 2 if quick else 5)
    ),
    "scale": Measure(
        CLUSTER, lambda quick: scale.measure(20 if quick else 500, SHAPE, 5 if quick else 60)
    ),
    "barrier": Measure((*CLUSTER, PEERS[0]), lambda quick: barrier.measure(1 if quick else 5)),
    "http": Measure(CLUSTER, lambda quick: http.measure(200 if quick else 600, 1 if quick else 15)),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.kubernetes", description=__doc__)
    parser.add_argument("measures", nargs="*", metavar="MEASURE", help=", ".join(MEASURES))
    parser.add_argument("--quick", action="store_true", help="small sizes: does it all work?")
    asked = parser.parse_args()
    unknown = set(asked.measures) - set(MEASURES)
    if unknown:
        parser.error(f"no measure is called {', '.join(unknown)}; there are {', '.join(MEASURES)}")
    chosen = asked.measures or list(MEASURES)
    build(*dict.fromkeys(program for title in chosen for program in MEASURES[title].programs))
    rows: list[Row] = []
    for title in chosen:
        print(f"measuring {title} ...", file=sys.stderr, flush=True)
        rows += MEASURES[title].rows(asked.quick)
    system = f"{os.cpu_count()} cores, Python {platform.python_version()}, {platform.system()}"
    print(f"{system}, Kubernetes {KUBERNETES_VERSION}\n")
    print("| what | Regatta | beside it | who | ratio |")
    print("|---|---|---|---|---|")
    for row in rows:
        ratio = f"{row.ratio:.2f}" if row.ratio is not None else ""
        print(f"| {row.what} | {row.ours} | {row.theirs} | {row.peer} | {ratio} |")


if __name__ == "__main__":
    main()
