"""N jobs of M pods: until all pods are made, all run, and all jobs are completed.

Every operator has a control plane of its own, started for it, one after another and in turns, so
that a slow hour of the machine strikes all alike.
"""

from __future__ import annotations

import statistics
import sys
import time
from dataclasses import dataclass

from benchmarks.kubernetes.audit import by_kind, made, writes
from benchmarks.kubernetes.cluster import cluster, let_pods_end, until_at_rest
from benchmarks.kubernetes.contenders import (
    Contender,
    Kubeflow,
    Regatta,
    Shape,
    Upstream,
    submit,
    warm_up,
)
from benchmarks.kubernetes.watching import Watch
from benchmarks.measure import Row, proportional_memory

NAMESPACE = "bench"


@dataclass(frozen=True)
class Run:
    """Seconds: until `running` since the first job was sent, then since the last pod had ended."""

    created: float
    running: float
    completed: float
    cleaned: float
    memory: int
    calls: float
    written: float


def measure(jobs: int, shape: Shape, rounds: int) -> list[Row]:
    contenders: list[Contender] = [Regatta(), Upstream(), Kubeflow()]
    runs: dict[str, list[Run]] = {contender.title: [] for contender in contenders}
    for number in range(rounds):
        for contender in contenders:
            run = one_run(contender, jobs, shape)
            print(f"  round {number + 1}, {contender.title}: {run}", file=sys.stderr, flush=True)
            runs[contender.title].append(run)
    ours = runs.pop(contenders[0].title)
    return [row for peer, theirs in runs.items() for row in _rows(jobs, shape, ours, peer, theirs)]


def one_run(contender: Contender, jobs: int, shape: Shape) -> Run:
    names = [f"job-{number}" for number in range(jobs)]
    pods = jobs * shape.pods
    with cluster() as (plane, audit):
        contender.install(plane)
        operator = contender.start(plane)
        try:
            warm_up(plane, contender)
            plane.create_namespace(NAMESPACE)
            until_at_rest(plane)
            with (
                Watch(plane, f"/api/v1/namespaces/{NAMESPACE}/pods") as seen,
                Watch(plane, contender.path(NAMESPACE), contender.stage) as known,
            ):
                began = submit(plane, contender, NAMESPACE, names, shape)
                seen.until(lambda c: c["made"] >= pods, "all pods made")
                running = seen.until(lambda c: c["Running"] >= pods, "all pods running")
                memory = proportional_memory(operator.pid)
                time.sleep(1)  # what it still has to write about running jobs
                let_pods_end(plane)
                ended = seen.until(lambda c: c["Succeeded"] + c["gone"] >= pods, "all pods ended")
                done = known.until(lambda c: c[contender.done] >= jobs, "all jobs completed")
                cleaned = seen.until(lambda c: c["gone"] >= pods, "all pods cleaned up")
            calls = audit.calls(contender.name, NAMESPACE)
        finally:
            operator.stop()
    print(f"  {contender.title}: {dict(by_kind(calls))}", file=sys.stderr, flush=True)
    return Run(
        created=made(calls)[pods - 1].answered - began,
        running=running - began,
        completed=max(done - ended, 0.0),
        cleaned=cleaned - ended,
        memory=memory,
        calls=len(calls) / jobs,
        written=len(writes(calls)) / jobs,
    )


def _rows(jobs: int, shape: Shape, ours: list[Run], peer: str, theirs: list[Run]) -> list[Row]:
    size = f"{jobs} jobs of {shape.pods} pods"

    def row(what: str, field: str, unit: str, digits: int = 1) -> Row:
        mine = statistics.median(getattr(run, field) for run in ours)
        their = statistics.median(getattr(run, field) for run in theirs)
        ratio = their / mine if mine else None
        return Row(what, f"{mine:.{digits}f} {unit}", f"{their:.{digits}f} {unit}", peer, ratio)

    return [
        row(f"{size}: all pods created", "created", "s", 2),
        row(f"{size}: all pods running", "running", "s", 2),
        row(f"{size}: last pod ended → all jobs completed", "completed", "s", 2),
        row(f"{size}: last pod ended → all pods cleaned up", "cleaned", "s", 2),
        row("API calls per job, from creation to clean-up", "calls", "calls"),
        row("of them writes", "written", "writes"),
        Row(
            f"memory with {jobs * shape.pods} pods running",
            _mib(ours),
            _mib(theirs),
            peer,
            statistics.median(r.memory for r in theirs) / statistics.median(r.memory for r in ours),
        ),
    ]


def _mib(runs: list[Run]) -> str:
    return f"{statistics.median(run.memory for run in runs) / 2**20:.0f} MiB"
