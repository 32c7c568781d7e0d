"""The smallest job files that show what is measured."""

from __future__ import annotations

import json
from pathlib import Path


def task_job(folder: Path, name: str, command: list[str], replicas: int = 1) -> Path:
    """A job of one task role, without anything to import."""
    template = {"spec": {"containers": [{"name": "main", "image": "none", "command": command}]}}
    document = {
        "apiVersion": "batch.paddlepaddle.org/v1",
        "kind": "PaddleJob",
        "metadata": {"name": name},
        "spec": {"tasks": [{"name": "t", "replicas": replicas, "template": template}]},
    }
    path = folder / f"{name}.json"
    path.write_text(json.dumps(document))
    return path
