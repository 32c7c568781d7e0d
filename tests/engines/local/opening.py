"""Engines on a home of their own, which end what they started when a test is over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from regatta.engines.blocking import Blocking, in_loop_thread
from regatta.engines.local.engine import LocalEngine
from regatta.engines.local.home import Home, open_home
from regatta.engines.local.replicas.runspec import run_folder
from regatta.engines.local.replicas.runtime import Runtime
from regatta.engines.local.scheduling.machine import Machine
from regatta.engines.local.store.database import Store
from tests.engines.local.jobs import eventually, pods_of

OpenEngine = Callable[..., Blocking]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    home = open_home(tmp_path / "home")
    yield home
    end_everything(home)


@pytest.fixture
def open_engine(home: Home) -> Iterator[OpenEngine]:
    """Opens engines on this test's home, one after another; `cpus` and `gpus` set its size."""
    opened: list[Blocking] = []

    def open_one(
        cpus: float = 4, gpus: tuple[str, ...] = (), pods: int = 110, **more: Any
    ) -> Blocking:
        machine = Machine(cpus=cpus, memory=8 << 30, gpus=gpus, pods=pods)
        opened.append(in_loop_thread(lambda: LocalEngine(home, machine=machine, **more)))
        return opened[-1]

    yield open_one
    for engine in opened:
        engine.close()


@pytest.fixture
def engine(open_engine: OpenEngine) -> Blocking:
    return open_engine()


def the_run_of(home: Home, engine: Blocking, name: str, role: str = "worker") -> Path:
    pod = pods_of(engine, name, role)[-1]
    return run_folder(home.pod(engine.get("default", name).uid, pod.uid), 1)


def supervisor_of(folder: Path) -> int:
    state = Runtime().inspect(folder)
    assert state.supervisor is not None
    return state.supervisor


def end_everything(home: Home) -> None:
    """What a test left running is ended by its own run, never by name."""
    if not home.database.exists():
        return
    store = Store(home.database)
    try:
        left = [pod for pod in store.read.pods_not_over() if pod.run]
    finally:
        store.close()
    runtime = Runtime()
    for pod in left:
        folder = run_folder(home.pod(pod.job_uid, pod.uid), pod.run)
        runtime.stop(folder, 0)
        eventually(lambda folder=folder: _ended(runtime, folder), f"the end of {pod.name}")
        runtime.sweep(f"{pod.uid}/{pod.run}", folder)


def _ended(runtime: Runtime, folder: Path) -> bool:
    return runtime.inspect(folder).phase not in ("Running", "Starting")
