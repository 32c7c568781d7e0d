"""An informer at work on ConfigMaps, and everything that it tells."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from regatta.engines.kubernetes.api.models import Bare
from regatta.engines.kubernetes.api.resources import CONFIG_MAPS
from regatta.engines.kubernetes.cache.informer import Informer, InformerSettings
from tests.kubernetes.client.clients import a_config_map, connect
from tests.kubernetes.controlplane.plane import ControlPlane

#: Only what tests make: the cluster puts a kube-root-ca.crt into every namespace.
OURS = {"made-by": "test"}
WATCH = "watch=true"
SOON = InformerSettings(first_pause_seconds=0.05, longest_pause_seconds=0.5)


class Watched:
    """An informer at work, and everything that its handler was told."""

    def __init__(self, informer: Informer[Any]) -> None:
        self.informer = informer
        self.told: list[str] = []
        informer.on_change(self._hear)

    def _hear(self, old: Any, new: Any) -> None:
        sign = "+" if old is None else "-" if new is None else "~"
        self.told.append(sign + (new or old).metadata.name)

    @property
    def names(self) -> set[str]:
        return {thing.metadata.name for thing in self.informer.store}


@asynccontextmanager
async def watched(
    kubeconfig: Path,
    namespace: str,
    settings: InformerSettings = SOON,
    *,
    kind: type[Any] = Bare,
    synced: bool = True,
) -> AsyncIterator[Watched]:
    async with connect(kubeconfig, retries=0, request_seconds=5.0) as client:
        informer = Informer(
            client,
            CONFIG_MAPS,
            kind,
            namespace=namespace,
            label_selector="made-by=test",
            settings=settings,
        )
        seen = Watched(informer)
        task = asyncio.ensure_future(informer.run())
        try:
            if synced:
                await informer.synced.wait()
            yield seen
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def make(plane: ControlPlane, namespace: str, *names: str) -> None:
    for name in names:
        body = a_config_map(name, labels=OURS)
        plane.api.create(f"/api/v1/namespaces/{namespace}/configmaps", body)


def change(plane: ControlPlane, namespace: str, name: str, value: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps/{name}"
    plane.api.patch(path, {"data": {"key": value}})


def remove(plane: ControlPlane, namespace: str, name: str) -> None:
    plane.api.delete(f"/api/v1/namespaces/{namespace}/configmaps/{name}")
