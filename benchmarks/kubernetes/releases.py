"""This operator beside that of another checkout, in the same run and on the same control plane.

    python -m benchmarks.kubernetes.releases CHECKOUT [MEASURE...]

CHECKOUT is another release's, with its `.venv` installed. Create rate and cold start take turns on
one cluster; memory needs a cluster each, as it is that of an operator that has made all pods.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.kubernetes.ceiling import operator_side
from benchmarks.kubernetes.cluster import cluster, until_at_rest
from benchmarks.kubernetes.contenders import Regatta, Shape
from benchmarks.kubernetes.scale import NAMESPACE, PODS_PER_NODE, fill, restart, weight
from benchmarks.kubernetes.watching import Watch
from benchmarks.measure import Row

SHAPE = Shape(servers=4, workers=6)
JOBS, ROUNDS = 50, 12
LARGE = 500
RESTARTS = 12


def create_rate(other: str) -> list[Row]:
    sides = {"this": Regatta(), "before": Regatta(other)}
    rates: dict[str, list[float]] = {title: [] for title in sides}
    own: dict[str, list[float]] = {title: [] for title in sides}
    with cluster() as (plane, audit):
        sides["this"].install(plane)
        for number in range(ROUNDS + 1):
            order = list(sides.items())
            for title, regatta in order if number % 2 else reversed(order):
                operator, *_ = restart(plane, regatta, 0)
                try:
                    until_at_rest(plane)
                    name = f"{title}-{number}"
                    side = operator_side(
                        plane, audit, regatta, operator, JOBS, SHAPE, name, paused=True
                    )
                finally:
                    operator.stop()
                _say(f"round {number}, {title}: {side.rate:.0f} pods/s, {side.own:.2f} ms each")
                if number:
                    rates[title].append(side.rate)
                    own[title].append(side.own)
    rate = _ratio(rates["before"], rates["this"])  # turned round: below 1 is better
    return [
        _row("create rate", rates, " pods/s", 0, rate),
        _row("its own processor time per pod", own, " ms", 2, _ratio(own["this"], own["before"])),
    ]


def cold_start(other: str) -> list[Row]:
    sides = {"this": Regatta(), "before": Regatta(other)}
    took: dict[str, list[float]] = {title: [] for title in sides}
    with cluster(_nodes(LARGE)) as (plane, _):
        sides["this"].install(plane)
        plane.create_namespace(NAMESPACE)
        operator = sides["this"].start(plane)
        with Watch(plane, f"/api/v1/namespaces/{NAMESPACE}/pods") as seen:
            fill(plane, sides["this"], seen, range(LARGE), SHAPE)
            time.sleep(10)
        operator.stop()
        for number in range(RESTARTS + 1):
            order = list(sides.items())
            for title, regatta in order if number % 2 else reversed(order):
                until_at_rest(plane)
                operator, _, seconds = restart(plane, regatta, LARGE)
                operator.stop()
                _say(f"restart {number}, {title}: {seconds:.2f} s")
                if number:
                    took[title].append(seconds)
    return [
        _row(
            f"cold start with {LARGE * SHAPE.pods:,} pods",
            took,
            " s",
            2,
            _ratio(took["this"], took["before"]),
        )
    ]


def memory(other: str) -> list[Row]:
    sides = {"this": Regatta(), "before": Regatta(other)}
    resident: dict[str, list[float]] = {}
    proportional: dict[str, list[float]] = {}
    for title, regatta in sides.items():
        with cluster(_nodes(2 * LARGE)) as (plane, _):
            regatta.install(plane)
            plane.create_namespace(NAMESPACE)
            operator = regatta.start(plane)
            with Watch(plane, f"/api/v1/namespaces/{NAMESPACE}/pods") as seen:
                for first in (0, LARGE):
                    fill(plane, regatta, seen, range(first, first + LARGE), SHAPE)
            time.sleep(10)
            weighed = weight(operator)
            operator.stop()
        _say(f"{title}: {weighed.words}")
        resident[title] = [weighed.resident / 1e6]
        proportional[title] = [weighed.proportional / 1e6]
    what = f"memory with {2 * LARGE * SHAPE.pods:,} pods, having made them"
    ratios = [_ratio(kept["this"], kept["before"]) for kept in (proportional, resident)]
    return [
        _row(what, proportional, " MB", 0, ratios[0]),
        _row("the same, resident", resident, " MB", 0, ratios[1]),
    ]


MEASURES: dict[str, Callable[[str], list[Row]]] = {
    "create-rate": create_rate,
    "cold-start": cold_start,
    "memory": memory,
}


def main() -> None:
    other = str(Path(sys.argv[1]).resolve() / ".venv/bin/regatta")
    rows: list[Row] = []
    for title in sys.argv[2:] or MEASURES:
        _say(f"measuring {title} ...")
        rows += MEASURES[title](other)
    print("| what | this | before | ratio (below 1 is better) |")
    print("|---|---|---|---|")
    for row in rows:
        print(f"| {row.what} | {row.ours} | {row.theirs} | {row.ratio:.2f} |", flush=True)


def _nodes(jobs: int) -> int:
    return max(8, jobs * SHAPE.pods // PODS_PER_NODE + 1)


def _ratio(mine: list[float], theirs: list[float]) -> float:
    return statistics.median(m / t for m, t in zip(mine, theirs, strict=True))


def _row(what: str, sides: dict[str, list[float]], unit: str, digits: int, ratio: float) -> Row:
    shown = [f"{statistics.median(sides[title]):.{digits}f}{unit}" for title in ("this", "before")]
    return Row(what, *shown, "", ratio)


def _say(text: str) -> None:
    print(f"  {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
