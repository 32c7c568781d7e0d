"""Small shell jobs for the real engine, and a way to wait for what becomes of them."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from regatta.api.job import Job, Phase
from regatta.engines.base import LogBatch, Remark, Shell, Submission
from regatta.engines.blocking import Blocking
from regatta.engines.inventory import PodView

T = TypeVar("T")

#: Far longer than anything takes; only a failing test waits so long.
PATIENCE = 60.0


def a_role(script: str, replicas: int = 1, **pod: Any) -> dict[str, Any]:
    """A role whose replicas run a shell script. `cpu`, `gpus` ask for resources; the rest goes
    into the pod's spec."""
    resources: dict[str, Any] = {}
    if (cpu := pod.pop("cpu", None)) is not None:
        resources["requests"] = {"cpu": str(cpu)}
    if (gpus := pod.pop("gpus", None)) is not None:
        resources["limits"] = {"nvidia.com/gpu": gpus}
    container = {
        "name": "main",
        "image": "unused",
        "command": ["sh", "-c", script],
        "resources": resources,
    }
    spec = {"terminationGracePeriodSeconds": 1, "containers": [container], **pod}
    return {"replicas": replicas, "template": {"spec": spec}}


def a_job(name: str, script: str = "true", replicas: int = 1, **spec: Any) -> dict[str, Any]:
    """A job of workers; `cpu` and `gpus` are per worker, other words go into the job's spec."""
    role = {key: spec.pop(key) for key in ("cpu", "gpus", "restartPolicy") if key in spec}
    return {
        "apiVersion": "batch.paddlepaddle.org/v1",
        "kind": "PaddleJob",
        "metadata": {"name": name},
        "spec": {"worker": a_role(script, replicas, **role), **spec},
    }


SHELL_FIELDS = set(Shell.__struct_fields__)


def a_submission(
    document: dict[str, Any], directory: Path | str = "/", **more: Any
) -> tuple[Submission, Shell]:
    """`more` are fields of either."""
    shell = {key: more.pop(key) for key in SHELL_FIELDS & more.keys()}
    here = {"directory": str(directory), "environment": {"PATH": os.environ["PATH"]}}
    return Submission(text=json.dumps(document), **more), Shell(**{**here, **shell})


def submit(
    engine: Blocking, document: dict[str, Any], directory: Path | str = "/", **more: Any
) -> Job:
    return engine.submit(*a_submission(document, directory, **more)).job


def eventually(look: Callable[[], T | None], what: str) -> T:
    """Poll the real thing until it shows something true."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        found = look()
        if found:
            return found
        time.sleep(0.01)
    raise AssertionError(f"{what} did not happen in {PATIENCE:.0f} s")


def wait_for(engine: Blocking, name: str, *phases: Phase) -> Job:
    def look() -> Job | None:
        job = engine.get("default", name)
        if job.finished and job.status.phase not in phases:
            raise AssertionError(f"{name} is {job.status.phase}: {job.status.message}")
        return job if job.status.phase in phases else None

    try:
        return eventually(look, f"{name} becoming {' or '.join(phases)}")
    except AssertionError as error:
        job = engine.get("default", name)
        pods = [(p.name, p.phase, p.reason, p.message) for p in engine.pods("default", name)]
        raise AssertionError(f"{error}: {job.status.phase} {job.status.message} {pods}") from None


def wait_until_quiet(engine: Blocking, name: str) -> list[PodView]:
    """Every replica has ended."""

    def look() -> list[PodView] | None:
        pods = engine.pods("default", name)
        return pods if pods and all(pod.finished_at for pod in pods) else None

    return eventually(look, f"the end of {name}'s processes")


def pods_of(engine: Blocking, name: str, role: str = "worker", index: int = 0) -> list[PodView]:
    return [p for p in engine.pods("default", name) if (p.role, p.index) == (role, index)]


def texts(updates: Iterable[LogBatch | Remark]) -> list[str]:
    return [line.text for batch in updates if isinstance(batch, LogBatch) for line in batch.lines]


def alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:
        return False
