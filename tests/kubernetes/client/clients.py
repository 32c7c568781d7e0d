"""Short ways to a client, and the small objects that tests make with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from regatta.engines.kubernetes.access.config import load_access
from regatta.engines.kubernetes.api.client import ClientSettings, KubeClient
from regatta.engines.kubernetes.api.exchange import CallObserver


def connect(kubeconfig: Path, observer: CallObserver | None = None, **settings: Any) -> KubeClient:
    access = load_access(kubeconfig, environment={})
    return KubeClient(access, ClientSettings(**settings), observer=observer)


def a_config_map(name: str, **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, **metadata},
        "data": {"key": "value"},
    }


def a_pod(name: str, **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **metadata},
        "spec": {"containers": [{"name": "main", "image": "train"}]},
    }
