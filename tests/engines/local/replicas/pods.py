"""Pods of tests, and what becomes of them on this machine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from regatta.api.errors import InvalidJob
from regatta.engines.local.replicas.build import (
    Context,
    Placement,
    build_run,
)
from regatta.engines.local.replicas.runspec import RunSpec

HERE = Placement(address="127.64.0.7", port_base=12340)


def a_pod(container: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    main = {"name": "main", "command": ["sh", "-c", "true"]} | (container or {})
    return {
        "metadata": {
            "name": "job-worker-0",
            "namespace": "team",
            "uid": "u-1",
            "labels": {"app": "ctr"},
            "annotations": {"note": "x"},
        },
        "spec": {"containers": [main], **spec},
    }


def run_of(pod: dict[str, Any], tmp_path: Path, **changes: Any) -> RunSpec:
    context = {"directory": str(tmp_path), "shell": {"PATH": os.environ["PATH"]}}
    context |= changes.pop("context", {})
    arguments: dict[str, Any] = {"placement": HERE, "environments": {}} | changes
    return build_run(pod, context=Context(**context), folder=Path("/runs/0"), run=3, **arguments)


def env_of(container: dict[str, Any], tmp_path: Path, **changes: Any) -> dict[str, str]:
    return run_of(a_pod(container), tmp_path, **changes).containers[0].env


def problems_of(pod: dict[str, Any], tmp_path: Path, **changes: Any) -> dict[str, str]:
    with pytest.raises(InvalidJob) as caught:
        run_of(pod, tmp_path, **changes)
    return {problem.path: problem.message for problem in caught.value.problems}
