"""How near the operator comes to a client that only creates pods, on the same control plane.

Pairs, interleaved: the machine's own rate moves by a factor of two within minutes. Compared is the
time from the first pod's request to the last one's answer, as the API server wrote them down;
scheduler and kwok work beside both. The plain client's pods are those that the brain asks for,
without an owner.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from datetime import UTC, datetime
from typing import Any

from tests.kubernetes.controlplane.plane import ControlPlane

from benchmarks.kubernetes.audit import AuditLog, Call, made
from benchmarks.kubernetes.cluster import cluster
from benchmarks.kubernetes.contenders import Regatta, Shape, submit, warm_up
from benchmarks.kubernetes.watching import Watch
from benchmarks.measure import ROOT, Row
from regatta.controller.plan import Instant
from regatta.controller.reconcile import reconcile
from regatta.engines.kubernetes.jobs import JobReader
from regatta.engines.kubernetes.observe import Found, children
from regatta.engines.kubernetes.slim import JobDocument


def measure(jobs: int, shape: Shape, pairs: int) -> list[Row]:
    ours: list[float] = []
    plain: list[float] = []
    ratios: list[float] = []
    calls: list[float] = []
    ends: list[float] = []
    regatta = Regatta()
    with cluster() as (plane, audit):
        regatta.install(plane)
        operator = regatta.start(plane)
        try:
            warm_up(plane, regatta)
            for number in range(pairs + 1):
                pods = jobs * shape.pods
                # Who goes first changes, and the first pair of all does not count: whoever
                # meets a control plane that has done nothing yet is faster.
                raw = _plain(plane, audit, regatta, jobs, shape, number) if number % 2 else 0.0
                rate, whole, per_pod = _operator(plane, audit, regatta, jobs, shape, number)
                raw = raw or _plain(plane, audit, regatta, jobs, shape, number)
                said = f"{rate:.0f} pods/s, plain client {raw:.0f}, {whole:.2f} s in all"
                print(f"  pair {number}, {pods} pods: {said}", file=sys.stderr, flush=True)
                if number == 0:
                    continue
                ours.append(rate)
                plain.append(raw)
                ratios.append(rate / raw)
                calls.append(per_pod)
                ends.append(pods / whole)
        finally:
            operator.stop()
    size = f"{jobs} jobs of {shape.pods} pods"
    peer = "a plain client that creates the same pods, 32 at a time"
    raw_rate = f"{statistics.median(plain):.0f} pods/s"
    return [
        Row(
            f"{size}: create rate, first pod to last",
            f"{statistics.median(ours):.0f} pods/s",
            raw_rate,
            peer,
            statistics.median(ratios),
        ),
        Row(
            f"{size}: create rate, first job sent to last pod",
            f"{statistics.median(ends):.0f} pods/s",
            raw_rate,
            peer,
            statistics.median(mine / raw for mine, raw in zip(ends, plain, strict=True)),
        ),
        Row("API calls per pod meanwhile", f"{statistics.median(calls):.2f}", "1.00", peer),
    ]


def _operator(
    plane: ControlPlane,
    audit: AuditLog,
    regatta: Regatta,
    jobs: int,
    shape: Shape,
    number: int,
) -> tuple[float, float, float]:
    """Pods a second; seconds from the first job; calls per pod until the last pod was made."""
    namespace = plane.create_namespace(f"operator-{number}")
    pods = jobs * shape.pods
    with Watch(plane, f"/api/v1/namespaces/{namespace}/pods") as seen:
        names = [f"job-{job}" for job in range(jobs)]
        began = submit(plane, regatta, namespace, names, shape)
        seen.until(lambda c: c["Running"] >= pods, "all pods running")
    calls = audit.calls(regatta.name, namespace)
    created = made(calls)
    last = created[-1].answered
    while_creating = [call for call in calls if call.answered <= last]
    plane.api.delete(regatta.path(namespace))
    _until_empty(plane, namespace)
    return _rate_of(created, pods), last - began, len(while_creating) / pods


def _plain(
    plane: ControlPlane, audit: AuditLog, regatta: Regatta, jobs: int, shape: Shape, number: int
) -> float:
    namespace = plane.create_namespace(f"plain-{number}")
    pods = jobs * shape.pods
    manifests = plane.folder / f"plain-{number}.json"
    manifests.write_text(json.dumps(bare_pods(regatta, jobs, shape)))
    kubeconfig = plane.kubeconfig("plain")
    command = [sys.executable, "-m", "benchmarks.kubernetes.plain_client"]
    with Watch(plane, f"/api/v1/namespaces/{namespace}/pods") as seen:
        subprocess.run([*command, kubeconfig, namespace, manifests], cwd=ROOT, check=True)
        seen.until(lambda c: c["Running"] >= pods, "all pods running")
    rate = _rate_of(made(audit.calls("plain", namespace)), pods)
    plane.api.delete(f"/api/v1/namespaces/{namespace}/pods?gracePeriodSeconds=0")
    _until_empty(plane, namespace)
    return rate


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
    time.sleep(2)  # controllers and caches come to rest


def bare_pods(regatta: Regatta, jobs: int, shape: Shape) -> list[dict[str, Any]]:
    """What the brain asks for when such jobs are new, without an owner."""
    wall = datetime.now(UTC)
    now = Instant(wall, wall.timestamp())
    reader = JobReader()
    pods = []
    for number in range(jobs):
        document = regatta.job(f"job-{number}", shape)
        document["metadata"] |= {"namespace": "plain", "uid": f"uid-{number}", "generation": 1}
        job = reader.read(JobDocument.from_json(json.dumps(document).encode()))
        plan = reconcile(job, children(job, Found()), now)
        pods += [dict(pod.manifest) for pod in plan.pods]
    for manifest in pods:
        metadata = dict(manifest["metadata"])
        metadata.pop("ownerReferences", None)
        metadata.pop("namespace", None)
        manifest["metadata"] = metadata
    return pods
