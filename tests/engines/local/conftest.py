"""Fixtures for tests on real processes. Whatever a test leaves running ends with it."""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from regatta.engines.local.replicas.runtime import Runtime
from tests.engines.local.opening import engine, home, open_engine
from tests.engines.local.runs import Pod, eventually

__all__ = ["engine", "home", "new_pod", "open_engine", "pod"]


@pytest.fixture
def new_pod(tmp_path: Path) -> Iterator[Callable[[], Pod]]:
    runtime = Runtime()
    pods: list[Pod] = []
    numbers = itertools.count()

    def make() -> Pod:
        pods.append(Pod(tmp_path / f"pod-{next(numbers)}", runtime))
        return pods[-1]

    yield make
    for pid in runtime.children():
        os.kill(pid, signal.SIGKILL)
    eventually(lambda: runtime.reap() or not runtime.children())
    for pod in pods:
        for run_id in pod.run_ids:
            runtime.sweep(run_id, pod.run)


@pytest.fixture
def pod(new_pod: Callable[[], Pod]) -> Pod:
    return new_pod()
