"""One stage, whoever answers: what a behaviour needs to set a job up, end its replicas and look.

Everything goes through the engine contract. Only the ending of a replica differs: on this machine
it is a shell that waits for the file that tells it how to end; on the cluster it is a pod of a
simulated node that is told the same by an annotation, and the engine under test cannot tell such a
pod from a real one.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from regatta.api.errors import JobNotFound
from regatta.api.job import Job, Phase
from regatta.engines.base import Accepted, Preview, Shell, Submission
from regatta.engines.blocking import Blocking
from tests.kubernetes.operator.running import Jobs

Document = dict[str, Any]
#: `(pod name, pod uid, exit code)`
End = Callable[[str, str, int], None]
PATIENCE = 60.0


def ends_by_file(folder: Path) -> End:
    def end(pod: str, uid: str, code: int) -> None:
        told = folder / f"{uid}.told"
        told.write_text(str(code))
        told.rename(folder / uid)

    return end


def ends_by_file_in(work: Path) -> End:
    """For jobs of a team's server, each of which starts in a folder of its own below `work`."""

    def end(pod: str, uid: str, code: int) -> None:
        for folder in work.glob("*/jobs/*"):
            ends_by_file(folder)(pod, uid, code)

    return end


def ends_by_annotation(jobs: Jobs) -> End:
    return lambda pod, uid, code: jobs.ends(pod, code)


class Stage:
    """An engine, a namespace in it, and words for what behaviours wait for."""

    def __init__(self, engine: Blocking, namespace: str, end: End, shell: Shell | None) -> None:
        self.engine = engine
        self.namespace = namespace
        self._end = end
        self._shell = shell

    @property
    def gives_shell(self) -> bool:
        return self._shell is not None

    def document(self, name: str, *, ps: int = 0, workers: int = 1, **spec: Any) -> Document:
        roles = {"worker": _role(workers)} | ({"ps": _role(ps)} if ps else {})
        return {
            "apiVersion": "batch.paddlepaddle.org/v1",
            "kind": "PaddleJob",
            "metadata": {"name": name},
            "spec": {**roles, **spec},
        }

    def submit(self, name: str, **more: Any) -> Accepted:
        """`key`, `replace` and other fields of a submission, or fields of the job's spec."""
        fields = set(Submission.__struct_fields__)
        said = {key: more.pop(key) for key in fields & more.keys()}
        return self.send(self.document(name, **more), **said)

    def send(self, document: Document, **more: Any) -> Accepted:
        submission = Submission(text=json.dumps(document), namespace=self.namespace, **more)
        return self.engine.submit(submission, self._shell)

    def preview(self, name: str, **more: Any) -> Preview:
        text = json.dumps(self.document(name, **more))
        return self.engine.preview(Submission(text=text, namespace=self.namespace), self._shell)

    def job(self, name: str) -> Job:
        return self.engine.get(self.namespace, name)

    def pods(self, name: str) -> dict[str, str]:
        """Phase of every pod that is there, by name."""
        pods = self.engine.pods(self.namespace, name)
        return {pod.name: pod.phase for pod in pods if pod.current}

    def end(self, pod: str, code: int) -> None:
        job = pod.rsplit("-", 2)[0]
        pods = self.engine.pods(self.namespace, job)
        (uid,) = [seen.uid for seen in pods if seen.current and seen.name == pod]
        self._end(pod, uid, code)

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
        def gone() -> bool:
            try:
                self.job(name)
            except JobNotFound:
                return True
            return False

        self.until(f"{name} is gone", gone)


def a_shell(folder: Path) -> Shell:
    return Shell(directory=str(folder), environment={"PATH": os.environ["PATH"]})


def _role(replicas: int) -> Document:
    wait = 'until [ -f "$UID_OF_POD" ]; do sleep 0.05; done; exit "$(cat "$UID_OF_POD")"'
    uid = {"fieldRef": {"fieldPath": "metadata.uid"}}
    container = {
        "name": "main",
        "image": "registry.local/none:1",
        "command": ["sh", "-c", wait],
        "env": [{"name": "UID_OF_POD", "valueFrom": uid}],
    }
    pod = {"terminationGracePeriodSeconds": 1, "containers": [container]}
    return {"replicas": replicas, "template": {"spec": pod}}
