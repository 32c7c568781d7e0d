"""From the environment being written to the training process running, on a real kubelet.

A pod that names a ConfigMap which does not exist yet is looked at again by its kubelet only now
and then. Regatta touches the pods that wait; upstream waits with them. Needs root on Debian.
"""

from __future__ import annotations

import statistics
import sys
import time
from typing import Any

from tests.kubernetes.controlplane.images import BASE, base_image
from tests.kubernetes.controlplane.machine import install_packages, why_no_real_node
from tests.kubernetes.controlplane.node import RealNode, import_image
from tests.kubernetes.controlplane.plane import ControlPlane

from benchmarks.kubernetes.audit import AuditLog, made
from benchmarks.kubernetes.cluster import cluster
from benchmarks.kubernetes.contenders import Contender, Regatta, Shape, Upstream
from benchmarks.measure import Row

SHAPE = Shape(1, 2)
#: Prints the time at which it began, before Python itself would have started.
PROGRAM = ["date", "+%s.%N"]


def measure(rounds: int) -> list[Row]:
    what = "environment written → training process started, on a real node"
    reason = why_no_real_node()
    if reason is not None:
        return [Row(what, f"not run: {reason}", "", "")]
    install_packages()
    base_image()
    ours, theirs = (run(contender, rounds) for contender in (Regatta(), Upstream()))
    mine, their = statistics.median(ours), statistics.median(theirs)
    return [
        Row(what, f"{mine:.2f} s", f"{their:.2f} s", Upstream.title, their / mine),
        Row("the slowest of them", f"{max(ours):.2f} s", f"{max(theirs):.2f} s", Upstream.title),
    ]


def run(contender: Contender, rounds: int) -> list[float]:
    with (
        cluster(kwok=False, accounts=True) as (plane, audit),
        RealNode(plane, patience_seconds=300),
    ):
        import_image(BASE)
        contender.install(plane)
        # Its init container comes from a registry that cannot be reached here.
        extra = ("-initImage", "") if isinstance(contender, Upstream) else ()
        operator = contender.start(plane, *extra)
        try:
            _one_job(plane, audit, contender, "unpack")  # the node's first use of an image is slow
            waits = [
                wait
                for number in range(rounds)
                for wait in _one_job(plane, audit, contender, f"round-{number}")
            ]
        finally:
            operator.stop()
    said = ", ".join(f"{wait:.2f}" for wait in waits)
    print(f"  {contender.title}: {said} s", file=sys.stderr, flush=True)
    return waits


def _one_job(
    plane: ControlPlane, audit: AuditLog, contender: Contender, namespace: str
) -> list[float]:
    """For each pod, the seconds between the ConfigMap's creation and its first process."""
    plane.create_namespace(namespace)
    inside = f"/api/v1/namespaces/{namespace}"
    account = f"{inside}/serviceaccounts/default"
    plane.api.wait_for(account, lambda seen: seen is not None, what="its account")
    job = contender.job("job", SHAPE)
    job["spec"]["cleanPodPolicy"] = "Never"
    for role in ("ps", "worker"):
        container = job["spec"][role]["template"]["spec"]["containers"][0]
        container |= {"image": BASE, "imagePullPolicy": "Never", "command": PROGRAM}
    plane.api.create(contender.path(namespace), job)
    pods = _ended(plane, f"{inside}/pods")
    written = made(audit.calls(contender.name, namespace), "configmaps")[0].answered
    logs = [plane.kubectl("logs", "-n", namespace, name).stdout for name in pods]
    return [float(log) - written for log in logs]


def _ended(plane: ControlPlane, path: str) -> list[str]:
    deadline = time.monotonic() + 180
    while True:
        pods: list[dict[str, Any]] = plane.api.items(path)
        ended = [p for p in pods if p["status"].get("phase") in ("Succeeded", "Failed")]
        if len(ended) == SHAPE.pods:
            return [pod["metadata"]["name"] for pod in ended]
        if time.monotonic() > deadline:
            states = {p["metadata"]["name"]: p["status"].get("phase") for p in pods}
            raise TimeoutError(f"pods did not end: {states}")
        time.sleep(0.2)
