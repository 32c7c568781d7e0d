"""PaddleJobs as plain documents, for an API server to judge."""

from __future__ import annotations

import copy
import json
from typing import Any

from tests.kubernetes.controlplane.api import Refused
from tests.kubernetes.controlplane.plane import ControlPlane

Document = dict[str, Any]

TEMPLATE: Document = {
    "spec": {"containers": [{"name": "main", "image": "x", "command": ["true"]}]},
}


def role(replicas: int = 1, **more: Any) -> Document:
    return {"replicas": replicas, "template": copy.deepcopy(TEMPLATE), **more}


def task(name: str, replicas: int = 1, **more: Any) -> Document:
    return {"name": name, **role(replicas, **more)}


def with_pod(**fields: Any) -> Document:
    """A template whose pod has these fields, too."""
    return {"spec": {**copy.deepcopy(TEMPLATE["spec"]), **fields}}


def with_policy(policy: str) -> Document:
    """A template with this restartPolicy."""
    return with_pod(restartPolicy=policy)


def on_the_host() -> Document:
    """A template that asks for its node's network by itself."""
    return with_pod(hostNetwork=True)


def a_job(name: str = "demo", **spec: Any) -> Document:
    """A job of one worker, unless the spec names its roles."""
    if not {"ps", "worker", "heter", "tasks"} & spec.keys():
        spec = {"worker": role(), **spec}
    return {
        "apiVersion": "batch.paddlepaddle.org/v1",
        "kind": "PaddleJob",
        "metadata": {"name": name},
        "spec": spec,
    }


def jobs_path(namespace: str, name: str = "") -> str:
    base = f"/apis/batch.paddlepaddle.org/v1/namespaces/{namespace}/paddlejobs"
    return f"{base}/{name}" if name else base


def refusal_of(plane: ControlPlane, job: Document, namespace: str = "default") -> str:
    """What the API server says against this job; empty where it would take it."""
    path = f"{jobs_path(namespace)}?dryRun=All&fieldValidation=Strict"
    try:
        plane.api.create(path, job)
    except Refused as refusal:
        return str(json.loads(refusal.body)["message"])
    return ""
