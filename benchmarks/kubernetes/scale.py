"""A large cluster: how long a restarted operator is blind, what it weighs, what it costs at rest.

One control plane for all of it: jobs are added until the first size is there, the operator is
watched doing nothing, then restarted again and again, then the jobs are doubled.
"""

from __future__ import annotations

import statistics
import sys
import time
import urllib.request
from pathlib import Path

from tests.kubernetes.controlplane.plane import ControlPlane
from tests.kubernetes.controlplane.processes import Daemon

from benchmarks.kubernetes.audit import AuditLog, by_kind, writes
from benchmarks.kubernetes.cluster import cluster, until_at_rest
from benchmarks.kubernetes.contenders import Regatta, Shape, submit
from benchmarks.kubernetes.watching import Watch
from benchmarks.measure import Row, milliseconds, proportional_memory

NAMESPACE = "large"
RESTARTS = 5
PODS_PER_NODE = 240


def measure(jobs: int, shape: Shape, quiet_seconds: float) -> list[Row]:
    """`jobs` are there for the restarts and the rest, twice as many for the memory."""
    regatta = Regatta()
    pods = jobs * shape.pods
    nodes = max(8, 2 * pods // PODS_PER_NODE + 1)
    with cluster(nodes) as (plane, audit):
        regatta.install(plane)
        plane.create_namespace(NAMESPACE)
        operator = regatta.start(plane)
        with Watch(plane, f"/api/v1/namespaces/{NAMESPACE}/pods") as seen:
            fill(plane, regatta, seen, range(jobs), shape)
            written = _at_rest(plane, audit, regatta, quiet_seconds)
            synced, passed = [], []
            for number in range(RESTARTS):
                operator.stop()
                until_at_rest(plane)
                operator, first, second = restart(plane, regatta, jobs)
                said = f"synced after {first:.2f} s, all jobs looked at after {second:.2f} s"
                print(f"  restart {number + 1}, {pods} pods: {said}", file=sys.stderr, flush=True)
                synced.append(first)
                passed.append(second)
            small = weight(operator)
            fill(plane, regatta, seen, range(jobs, 2 * jobs), shape)
            time.sleep(10)
            grown = weight(operator)
            operator.stop()
            operator, *_ = restart(plane, regatta, 2 * jobs)
            fresh = weight(operator)
            operator.stop()
    return [
        Row(
            f"cold start with {pods} pods: process started → caches filled",
            milliseconds(statistics.median(synced)),
            "",
            "",
        ),
        Row(
            f"cold start with {pods} pods: process started → all {jobs} jobs looked at",
            milliseconds(statistics.median(passed)),
            "1000 ms",
            "our limit",
            1.0 / statistics.median(passed),
        ),
        Row(
            f"{jobs} settled jobs: writes in {quiet_seconds:.0f} s", str(written), "0", "our limit"
        ),
        Row(f"memory with {pods} pods, restarted", small.words, "", ""),
        Row(f"memory with {2 * pods} pods, restarted", fresh.words, "100 MB", "our limit"),
        Row(f"memory with {2 * pods} pods, having made them", grown.words, "100 MB", "our limit"),
    ]


def fill(plane: ControlPlane, regatta: Regatta, seen: Watch, numbers: range, shape: Shape) -> None:
    began = submit(plane, regatta, NAMESPACE, [f"job-{number}" for number in numbers], shape)
    goal = numbers.stop * shape.pods
    ran = seen.until(lambda c: c["Running"] >= goal, f"{goal} pods running", 1200)
    print(f"  {goal} pods run after {ran - began:.0f} s more", file=sys.stderr, flush=True)


class Weight:
    def __init__(self, pid: int) -> None:
        self.proportional = proportional_memory(pid)
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        self.resident = pages * 4096

    @property
    def words(self) -> str:
        return f"{self.proportional / 1e6:.0f} MB (RSS {self.resident / 1e6:.0f})"


def weight(operator: Daemon) -> Weight:
    return Weight(operator.pid)


def restart(plane: ControlPlane, regatta: Regatta, jobs: int) -> tuple[Daemon, float, float]:
    """Seconds from the start of the process until it is ready, and until its first pass is done."""
    began = time.perf_counter()
    operator = regatta.start(plane)
    while _page(regatta, "readyz") != "ok\n":
        time.sleep(0.01)
    synced = time.perf_counter() - began
    while _looks(regatta) < jobs:
        time.sleep(0.02)
        if time.perf_counter() - began > 120:
            raise TimeoutError(f"only {_looks(regatta):.0f} of {jobs} jobs were looked at")
    return operator, synced, time.perf_counter() - began


def _looks(regatta: Regatta) -> float:
    for line in _page(regatta, "metrics").splitlines():
        if line.startswith("regatta_reconcile_seconds_count"):
            return float(line.split()[1])
    return 0.0


def _page(regatta: Regatta, name: str) -> str:
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(f"http://127.0.0.1:{regatta.port}/{name}", timeout=10) as page:
            return str(page.read().decode())
    except OSError:
        return ""


def _at_rest(plane: ControlPlane, audit: AuditLog, regatta: Regatta, seconds: float) -> int:
    """Writes, Leases left out, once nothing has been written for ten seconds."""
    quiet_since = time.time()
    while time.time() - quiet_since < 10:
        time.sleep(1)
        latest = max((c.answered for c in writes(audit.calls(regatta.name))), default=0.0)
        quiet_since = max(quiet_since, latest)
    began = time.time()
    time.sleep(seconds)
    done = [call for call in writes(audit.calls(regatta.name)) if call.answered > began]
    print(f"  at rest: {dict(by_kind(done))}", file=sys.stderr, flush=True)
    return len(done)
