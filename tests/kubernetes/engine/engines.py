"""The Kubernetes engine itself, without a command in front of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from regatta.engines.blocking import Blocking
from regatta.engines.kubernetes.access.config import load_access
from regatta.engines.kubernetes.engine.engine import KubernetesEngine, open_cluster

#: Verb and resource of every request.
Calls = Counter[tuple[str, str]]


@contextmanager
def opened(kubeconfig: Path, namespace: str) -> Iterator[Blocking]:
    """As the command opens it."""
    engine = open_cluster(kubeconfig, None, namespace)
    try:
        yield engine
    finally:
        engine.close()


@asynccontextmanager
async def wide(
    kubeconfig: Path, linger_seconds: float = 0.0
) -> AsyncIterator[tuple[KubernetesEngine, Calls]]:
    """As a server has it, with a count of what it asks for."""
    calls: Calls = Counter()

    def observe(verb: str, resource: str, code: int, seconds: float) -> None:
        calls[verb, resource] += 1

    engine = KubernetesEngine(
        load_access(kubeconfig), wide=True, linger_seconds=linger_seconds, observer=observe
    )
    try:
        yield engine, calls
    finally:
        await engine.close()
