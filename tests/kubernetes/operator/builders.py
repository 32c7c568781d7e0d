"""PaddleJobs for these tests, in the words of the cases: `a_job("mnist").with_ps(2).workers(2)`."""

from __future__ import annotations

import copy
from typing import Any

from tests.kubernetes.controlplane.kwok import exits

Document = dict[str, Any]


def pod_template(**annotations: str) -> Document:
    template: Document = {
        "spec": {
            "containers": [
                {
                    "name": "paddle",
                    "image": "registry.local/train:1",
                    "command": ["python", "train.py"],
                    "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
                }
            ],
            "terminationGracePeriodSeconds": 1,
        }
    }
    if annotations:
        template["metadata"] = {"annotations": annotations}
    return template


class JobBuilder:
    """Every step returns a new builder; `document()` is what `kubectl apply` would be given."""

    def __init__(self, document: Document) -> None:
        self._document = document

    def document(self) -> Document:
        return copy.deepcopy(self._document)

    def _with(self, *path: str, value: Any) -> JobBuilder:
        document = self.document()
        place = document
        for key in path[:-1]:
            place = place.setdefault(key, {})
        place[path[-1]] = value
        return JobBuilder(document)

    def spec(self, **fields: Any) -> JobBuilder:
        builder = self
        for name, value in fields.items():
            builder = builder._with("spec", name, value=value)
        return builder

    def policy(self, **fields: Any) -> JobBuilder:
        builder = self
        for name, value in fields.items():
            builder = builder._with("spec", "runPolicy", name, value=value)
        return builder

    def role(self, role: str, replicas: int, **annotations: str) -> JobBuilder:
        wanted = {"replicas": replicas, "template": pod_template(**annotations)}
        return self._with("spec", role, value=wanted)

    def with_ps(self, replicas: int, **annotations: str) -> JobBuilder:
        return self.role("ps", replicas, **annotations)

    def workers(self, replicas: int, **annotations: str) -> JobBuilder:
        return self.role("worker", replicas, **annotations)

    def pod(self, role: str, **fields: Any) -> JobBuilder:
        """More fields of a role's pod spec."""
        document = self.document()
        document["spec"][role]["template"]["spec"].update(fields)
        return JobBuilder(document)

    def annotated(self, **annotations: str) -> JobBuilder:
        return self._with("metadata", "annotations", value=annotations)

    def that_succeeds(self, after: str = "") -> JobBuilder:
        """Its workers end well as soon as they run."""
        document = self.document()
        template = document["spec"]["worker"]["template"]
        template.setdefault("metadata", {}).setdefault("annotations", {}).update(
            exits(0, after=after)
        )
        return JobBuilder(document)


def a_job(name: str) -> JobBuilder:
    return JobBuilder(
        {
            "apiVersion": "batch.paddlepaddle.org/v1",
            "kind": "PaddleJob",
            "metadata": {"name": name},
            "spec": {},
        }
    )
