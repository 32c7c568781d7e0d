"""The operators that are compared, each started as its own documentation starts it.

The job is the same for all: servers and workers, one small container each. Upstream calls a PS job
completed when its servers have ended too, and Kubeflow when its masters have, so all pods end.
"""

from __future__ import annotations

import base64
import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.kubernetes.controlplane.api import Refused
from tests.kubernetes.controlplane.build import kept, program
from tests.kubernetes.controlplane.kwok import exits
from tests.kubernetes.controlplane.plane import ControlPlane
from tests.kubernetes.controlplane.processes import Daemon, free_port

from benchmarks.kubernetes.watching import Seen, Stage, phase
from benchmarks.measure import REGATTA, ROOT

Document = dict[str, Any]


@dataclass(frozen=True)
class Shape:
    """Of one job."""

    servers: int = 4
    workers: int = 6

    @property
    def pods(self) -> int:
        return self.servers + self.workers


class Contender:
    """One operator. `name` is also the user as whom it talks to the API server."""

    name = ""
    title = ""
    group = "batch.paddlepaddle.org"
    done = "Completed"
    stage: Stage = staticmethod(phase)

    def install(self, plane: ControlPlane) -> None:
        raise NotImplementedError

    def start(self, plane: ControlPlane, *more: str) -> Daemon:
        raise NotImplementedError

    def job(self, name: str, shape: Shape) -> Document:
        raise NotImplementedError

    def path(self, namespace: str) -> str:
        return f"/apis/{self.group}/v1/namespaces/{namespace}/paddlejobs"

    def _serve(self, plane: ControlPlane, crds: list[Path]) -> None:
        for crd in crds:
            plane.kubectl("create", "-f", str(crd))
        deadline = time.monotonic() + 60
        # A resource answers 404 and then 429 for a moment after its definition was taken.
        while plane.api.raw("GET", f"/apis/{self.group}/v1/paddlejobs")[0] != 200:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self.group}: PaddleJobs are not served")
            time.sleep(0.1)

    def _daemon(self, plane: ControlPlane, *command: str | Path, **env: str) -> Daemon:
        daemon = Daemon(self.name, command, plane.logs / f"{self.name}.log", env)
        daemon.start()
        return daemon


class Regatta(Contender):
    name = "regatta"
    title = "Regatta"

    def __init__(self, program: str = REGATTA) -> None:
        """`program`: another release's `regatta`, to be measured beside this one."""
        self.port = 0
        self._program = program

    def install(self, plane: ControlPlane) -> None:
        self._serve(plane, [ROOT / "deploy" / "v1" / "crd.yaml"])

    def start(self, plane: ControlPlane, *more: str) -> Daemon:
        self.port = free_port()
        address = f"127.0.0.1:{self.port}"
        return self._daemon(
            plane,
            *(self._program, "operator", "--kubeconfig", plane.kubeconfig(self.name)),
            *("--metrics-bind-address", address, "--health-probe-bind-address", address),
            *more,
        )

    def job(self, name: str, shape: Shape) -> Document:
        return paddle_job(name, shape)


class Upstream(Contender):
    name = "upstream"
    title = "paddle-operator v0.3.5"

    def install(self, plane: ControlPlane) -> None:
        self._serve(plane, [kept("upstream-operator-deploy") / "crd.yaml"])

    def start(self, plane: ControlPlane, *more: str) -> Daemon:
        return self._daemon(
            plane,
            *(program("upstream-operator"), "-kubeconfig", plane.kubeconfig(self.name)),
            *("-metrics-bind-address", "0", "-health-probe-bind-address", "0"),
            *more,
        )

    def job(self, name: str, shape: Shape) -> Document:
        return paddle_job(name, shape)


class Kubeflow(Contender):
    name = "kubeflow"
    title = "Kubeflow training-operator v1.8.1"
    group = "kubeflow.org"
    done = "Succeeded"

    @staticmethod
    def stage(thing: Seen) -> str:
        """Its jobs have no phase: the last condition that holds is how far they are."""
        true = [c.type for c in thing.status.conditions if c.status == "True"]
        return true[-1] if true else ""

    def install(self, plane: ControlPlane) -> None:
        plane.create_namespace("kubeflow")
        plane.api.create("/api/v1/namespaces/kubeflow/secrets", {"metadata": {"name": _SECRET}})
        plane.api.create(
            "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
            {"metadata": {"name": "validator.training-operator.kubeflow.org"}, "webhooks": []},
        )
        crds = kept("training-operator-crds").glob("kubeflow.org_*.yaml")
        self._serve(plane, sorted(crds))

    def start(self, plane: ControlPlane, *more: str) -> Daemon:
        daemon = self._daemon(
            plane,
            *(program("training-operator"), "-kubeconfig", plane.kubeconfig(self.name)),
            *("-metrics-bind-address", "127.0.0.1:0", "-health-probe-bind-address", "0"),
            *("-webhook-server-port", str(free_port())),
            *more,
            MY_POD_NAMESPACE="kubeflow",
        )
        _mount_secret(plane)
        return daemon

    def job(self, name: str, shape: Shape) -> Document:
        def role(replicas: int) -> Document:
            template = pod_template()
            return {"replicas": replicas, "restartPolicy": "Never", "template": template}

        return {
            "apiVersion": "kubeflow.org/v1",
            "kind": "PaddleJob",
            "metadata": {"name": name},
            "spec": {
                "runPolicy": {"cleanPodPolicy": "All"},
                "paddleReplicaSpecs": {
                    "Master": role(shape.servers),
                    "Worker": role(shape.workers),
                },
            },
        }


_SECRET = "training-operator-webhook-cert"
#: Written into the program.
_MOUNTED = Path("/tmp/k8s-webhook-server/serving-certs")


def _mount_secret(plane: ControlPlane) -> None:
    """The operator fills the Secret, and waits until a kubelet shows it as files."""
    secret = plane.api.wait_for(
        f"/api/v1/namespaces/kubeflow/secrets/{_SECRET}",
        lambda seen: bool((seen or {}).get("data", {}).get("tls.crt")),
        what="its certificate",
    )
    _MOUNTED.mkdir(parents=True, exist_ok=True)
    for name, content in secret["data"].items():
        (_MOUNTED / name).write_bytes(base64.b64decode(content))


def pod_template() -> Document:
    return {
        "metadata": {"annotations": exits(0)},
        "spec": {
            "containers": [
                {
                    "name": "paddle",
                    "image": "registry.local/train:1",
                    "command": ["python", "train.py"],
                    "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
                }
            ],
        },
    }


def paddle_job(name: str, shape: Shape) -> Document:
    spec: Document = {
        "intranet": "PodIP",
        "cleanPodPolicy": "OnCompletion",
        "worker": {"replicas": shape.workers, "template": pod_template()},
    }
    if shape.servers:
        spec["ps"] = {"replicas": shape.servers, "template": pod_template()}
    return {
        "apiVersion": "batch.paddlepaddle.org/v1",
        "kind": "PaddleJob",
        "metadata": {"name": name},
        "spec": spec,
    }


def submit(
    plane: ControlPlane, contender: Contender, namespace: str, names: list[str], shape: Shape
) -> float:
    """Create the jobs, eight at a time, as a user's scripts would; when the first was sent."""
    waiting = iter(names)
    lock = threading.Lock()
    failures: list[Refused] = []

    def work() -> None:
        while True:
            with lock:
                name = next(waiting, None)
            if name is None:
                return
            try:
                plane.api.create(contender.path(namespace), contender.job(name, shape))
            except Refused as refused:
                failures.append(refused)

    began = time.time()
    threads = [threading.Thread(target=work) for _ in range(min(8, os.cpu_count() or 1) * 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return began


def warm_up(plane: ControlPlane, contender: Contender) -> None:
    """One small job: the operator is up, its caches are filled, it has made a pod."""
    namespace = plane.create_namespace("warm-up")
    deadline = time.monotonic() + 60
    submit(plane, contender, namespace, ["first"], Shape(1, 1))
    while len(plane.api.items(f"/api/v1/namespaces/{namespace}/pods")) < 2:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{contender.title} makes no pods")
        time.sleep(0.1)
