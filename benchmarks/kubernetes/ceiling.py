"""How near the operator comes to a client that only creates pods, on the same control plane.

Interleaved: the machine's own rate moves by a factor of two within minutes. Compared is the time
from the first pod's request to the last one's answer, as the API server wrote them down; scheduler
and kwok work beside all. The plain client has its pods ready in a file, and they are those that the
brain asks for, without an owner. The operator is measured twice: with all jobs waiting for it, and
while a user's script is still sending them, which costs the API server and this machine as well.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from tests.kubernetes.controlplane.plane import ControlPlane
from tests.kubernetes.controlplane.processes import Daemon

from benchmarks.kubernetes.audit import AuditLog, Call, made
from benchmarks.kubernetes.cluster import cluster, until_at_rest
from benchmarks.kubernetes.contenders import Regatta, Shape, submit, warm_up
from benchmarks.kubernetes.watching import Watch
from benchmarks.measure import ROOT, Row, processor_seconds
from regatta.controller.plan import Instant
from regatta.controller.reconcile import reconcile
from regatta.engines.kubernetes.objects.children import Found, children
from regatta.engines.kubernetes.objects.job_document import JobDocument
from regatta.engines.kubernetes.operator.job_reader import JobReader


@dataclass(frozen=True)
class Side:
    """How one of them did. `own` and `plane`: milliseconds of processor time for each pod."""

    rate: float
    calls: float
    own: float
    plane: float


def measure(jobs: int, shape: Shape, rounds: int) -> list[Row]:
    waiting: list[Side] = []
    sent: list[Side] = []
    plain: list[Side] = []
    regatta = Regatta()
    with cluster() as (plane, audit):
        regatta.install(plane)
        operator = regatta.start(plane)

        def ours(name: str, *, paused: bool) -> Side:
            return operator_side(plane, audit, regatta, operator, jobs, shape, name, paused=paused)

        sides: list[tuple[str, list[Side], Callable[[str], Side]]] = [
            ("jobs waiting", waiting, lambda name: ours(name, paused=True)),
            ("jobs being sent", sent, lambda name: ours(name, paused=False)),
            ("plain client", plain, lambda name: _plain(plane, audit, regatta, jobs, shape, name)),
        ]
        try:
            warm_up(plane, regatta)
            until_at_rest(plane)
            for number in range(rounds + 1):
                # Who goes first changes, and the first round does not count: whoever meets a
                # control plane that has done nothing yet is faster.
                for title, kept, run in sides[number % 3 :] + sides[: number % 3]:
                    side = run(f"{title.replace(' ', '-')}-{number}")
                    print(f"  round {number}, {title}: {side}", file=sys.stderr, flush=True)
                    if number:
                        kept.append(side)
        finally:
            operator.stop()
    return _rows(f"{jobs} jobs of {shape.pods} pods", waiting, sent, plain)


def _rows(size: str, waiting: list[Side], sent: list[Side], plain: list[Side]) -> list[Row]:
    peer = "a plain client that creates the same pods, 32 at a time"

    def row(what: str, ours: list[Side], field: str, digits: int, unit: str) -> Row:
        mine, raw = ([getattr(side, field) for side in sides] for sides in (ours, plain))
        ratio = statistics.median(m / r for m, r in zip(mine, raw, strict=True))
        shown = [f"{statistics.median(side):.{digits}f}{unit}" for side in (mine, raw)]
        return Row(what, *shown, peer, ratio)

    return [
        row(f"{size}: create rate, all jobs waiting", waiting, "rate", 0, " pods/s"),
        row(f"{size}: create rate, jobs being sent meanwhile", sent, "rate", 0, " pods/s"),
        row("all jobs waiting: API calls per pod meanwhile", waiting, "calls", 2, ""),
        row("its own processor time per pod", waiting, "own", 2, " ms"),
        row("the control plane's and kwok's", waiting, "plane", 2, " ms"),
    ]


class _Used:
    """Processor time that somebody and the control plane use from now on."""

    def __init__(self, plane: ControlPlane) -> None:
        self._parts = [part.pid for part in plane.parts]
        self._before = self._sum()

    def _sum(self) -> float:
        return sum(processor_seconds(pid) for pid in self._parts)

    def milliseconds(self, pods: int) -> float:
        return (self._sum() - self._before) * 1000 / pods


def operator_side(
    plane: ControlPlane,
    audit: AuditLog,
    regatta: Regatta,
    operator: Daemon,
    jobs: int,
    shape: Shape,
    namespace: str,
    *,
    paused: bool,
) -> Side:
    """`paused`: the operator sleeps until all jobs are there and the API server is at rest."""
    plane.create_namespace(namespace)
    pods = jobs * shape.pods
    names = [f"job-{job}" for job in range(jobs)]
    with Watch(plane, f"/api/v1/namespaces/{namespace}/pods") as seen:
        if paused:
            operator.pause()
            submit(plane, regatta, namespace, names, shape)
            until_at_rest(plane)
        used, before = _Used(plane), processor_seconds(operator.pid)
        if paused:
            operator.resume()
        else:
            submit(plane, regatta, namespace, names, shape)
        seen.until(lambda c: c["made"] >= pods, "all pods made")
        theirs, own = used.milliseconds(pods), processor_seconds(operator.pid) - before
        seen.until(lambda c: c["Running"] >= pods, "all pods running")
    calls = audit.calls(regatta.name, namespace)
    created = made(calls)
    while_creating = [call for call in calls if call.answered <= created[-1].answered]
    plane.api.delete(regatta.path(namespace))
    _until_empty(plane, namespace)
    return Side(
        rate=_rate_of(created, pods),
        calls=len(while_creating) / pods,
        own=own * 1000 / pods,
        plane=theirs,
    )


def _plain(
    plane: ControlPlane, audit: AuditLog, regatta: Regatta, jobs: int, shape: Shape, namespace: str
) -> Side:
    plane.create_namespace(namespace)
    pods = jobs * shape.pods
    manifests = plane.folder / f"{namespace}.json"
    manifests.write_text(json.dumps(bare_pods(regatta, jobs, shape)))
    kubeconfig = plane.kubeconfig("plain")
    command = [sys.executable, "-m", "benchmarks.kubernetes.plain_client"]
    with Watch(plane, f"/api/v1/namespaces/{namespace}/pods") as seen:
        used = _Used(plane)
        answer = subprocess.run(
            [*command, kubeconfig, namespace, manifests],
            cwd=ROOT,
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        theirs = used.milliseconds(pods)
        seen.until(lambda c: c["Running"] >= pods, "all pods running")
    calls = audit.calls("plain", namespace)
    rate = _rate_of(made(calls), pods)
    plane.api.delete(f"/api/v1/namespaces/{namespace}/pods?gracePeriodSeconds=0")
    _until_empty(plane, namespace)
    own = float(answer.stdout) * 1000 / pods
    return Side(rate=rate, calls=len(calls) / pods, own=own, plane=theirs)


def _rate_of(created: list[Call], pods: int) -> float:
    if len(created) != pods:
        raise RuntimeError(f"{len(created)} pods were created instead of {pods}")
    return pods / (created[-1].answered - min(call.asked for call in created))


def _until_empty(plane: ControlPlane, namespace: str) -> None:
    deadline = time.monotonic() + 120
    while plane.api.items(f"/api/v1/namespaces/{namespace}/pods?limit=1"):
        if time.monotonic() > deadline:
            raise TimeoutError(f"pods of {namespace} do not go")
        time.sleep(0.25)
    until_at_rest(plane)


def bare_pods(regatta: Regatta, jobs: int, shape: Shape) -> list[dict[str, Any]]:
    """What the brain asks for when such jobs are new, without an owner."""
    wall = datetime.now(UTC)
    now = Instant(wall, wall.timestamp())
    reader = JobReader()
    pods = []
    for number in range(jobs):
        document = regatta.job(f"job-{number}", shape)
        document["metadata"] |= {"namespace": "plain", "uid": f"uid-{number}", "generation": 1}
        job = reader.read(JobDocument.from_json(json.dumps(document).encode())).job
        plan = reconcile(job, children(job, Found()), now)
        pods += [dict(pod.manifest) for pod in plan.pods]
    for manifest in pods:
        metadata = dict(manifest["metadata"])
        metadata.pop("ownerReferences", None)
        metadata.pop("namespace", None)
        manifest["metadata"] = metadata
    return pods
