"""One stage, two engines: what a behaviour needs to set a job up, end its replicas and look.

On this machine a replica is a shell that waits for the file that tells it how to end. On the
cluster it is a pod of a simulated node that is told the same by an annotation: the engine under
test cannot tell such a pod from a real one.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import msgspec

from regatta.api.errors import JobNotFound
from regatta.api.job import Job, Phase
from regatta.engines.base import Submission
from regatta.engines.local.engine import LocalEngine
from tests.kubernetes.operator.running import Jobs

Document = dict[str, Any]
PATIENCE = 60.0


class Stage(Protocol):
    def submit(self, document: Document) -> None: ...

    def find(self, name: str) -> Job | None: ...

    def pods(self, name: str) -> dict[str, str]:
        """Phase of every pod that is there, by name."""
        ...

    def end(self, pod: str, code: int) -> None: ...

    def edit(self, name: str, **policy: Any) -> None: ...

    def scale(self, name: str, workers: int) -> None: ...

    def delete(self, name: str) -> None: ...


class LocalStage:
    def __init__(self, engine: LocalEngine, folder: Path) -> None:
        self._engine = engine
        self._folder = folder

    def submit(self, document: Document) -> None:
        text = json.dumps(document)
        shell = {"PATH": os.environ["PATH"]}
        folder = str(self._folder)
        self._engine.submit(Submission(text=text, directory=folder, shell=shell))

    def find(self, name: str) -> Job | None:
        try:
            return self._engine.get("default", name)
        except JobNotFound:
            return None

    def pods(self, name: str) -> dict[str, str]:
        return {p.name: p.phase for p in self._engine.pods("default", name) if p.current}

    def end(self, pod: str, code: int) -> None:
        job = pod.rsplit("-", 2)[0]
        (uid,) = [p.uid for p in self._engine.pods("default", job) if p.current and p.name == pod]
        told = self._folder / f"{uid}.told"
        told.write_text(str(code))
        told.rename(self._folder / uid)

    def edit(self, name: str, **policy: Any) -> None:
        (change,) = policy.items()
        act = {
            ("abort", True): self._engine.stop,
            ("suspend", True): self._engine.suspend,
            ("suspend", False): self._engine.resume,
        }[change]
        act("default", name)

    def scale(self, name: str, workers: int) -> None:
        self._engine.scale("default", name, "worker", workers)

    def delete(self, name: str) -> None:
        self._engine.delete("default", name)


class ClusterStage:
    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs

    def submit(self, document: Document) -> None:
        self._jobs.create(document)

    def find(self, name: str) -> Job | None:
        found = self._jobs.api.find(f"{self._jobs.path}/{name}")
        if found is None:
            return None
        found["spec"].setdefault("mode", found.get("status", {}).get("mode") or "Single")
        return msgspec.convert(found, Job, strict=False)

    def pods(self, name: str) -> dict[str, str]:
        pods = self._jobs.pods(name)
        return {pod: seen["status"].get("phase", "Pending") for pod, seen in pods.items()}

    def end(self, pod: str, code: int) -> None:
        self._jobs.ends(pod, code)

    def edit(self, name: str, **policy: Any) -> None:
        self._jobs.change(name, runPolicy=policy)

    def scale(self, name: str, workers: int) -> None:
        self._jobs.plane.kubectl(
            "--namespace", self._jobs.namespace, "scale", f"pdj/{name}", f"--replicas={workers}"
        )

    def delete(self, name: str) -> None:
        self._jobs.delete(name)


class Play:
    """A stage with words for what behaviours wait for."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self.end = stage.end
        self.edit = stage.edit
        self.scale = stage.scale
        self.delete = stage.delete
        self.pods = stage.pods

    def submit(self, name: str, *, ps: int = 0, workers: int = 1, **spec: Any) -> None:
        roles = {"worker": _role(workers)} | ({"ps": _role(ps)} if ps else {})
        self._stage.submit(
            {
                "apiVersion": "batch.paddlepaddle.org/v1",
                "kind": "PaddleJob",
                "metadata": {"name": name},
                "spec": {**roles, **spec},
            }
        )

    def job(self, name: str) -> Job:
        job = self._stage.find(name)
        assert job is not None, f"there is no job {name}"
        return job

    def until(self, what: str, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not holds():
            assert time.monotonic() < deadline, f"never seen: {what}"
            time.sleep(0.02)

    def reaches(self, name: str, phase: Phase) -> Job:
        def there() -> bool:
            status = self.job(name).status
            assert status.phase is phase or not (status.phase and status.phase.final), status
            return status.phase is phase

        self.until(f"{name} is {phase}", there)
        return self.job(name)

    def runs_again(self, name: str, attempt: int) -> Job:
        """Every replica runs, as that attempt or a later one."""

        def there() -> bool:
            status = self.job(name).status
            return status.phase is Phase.RUNNING and status.attempt >= attempt

        self.until(f"{name} runs as attempt {attempt}", there)
        return self.job(name)

    def is_gone(self, name: str) -> None:
        self.until(f"{name} is gone", lambda: self._stage.find(name) is None)


def _role(replicas: int) -> Document:
    wait = 'until [ -f "$UID_OF_POD" ]; do sleep 0.02; done; exit "$(cat "$UID_OF_POD")"'
    uid = {"fieldRef": {"fieldPath": "metadata.uid"}}
    container = {
        "name": "main",
        "image": "registry.local/none:1",
        "command": ["sh", "-c", wait],
        "env": [{"name": "UID_OF_POD", "valueFrom": uid}],
    }
    pod = {"terminationGracePeriodSeconds": 1, "containers": [container]}
    return {"replicas": replicas, "template": {"spec": pod}}
