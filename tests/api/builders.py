"""Documents for tests: `a_job().with_ps(2).doc()` in place of walls of YAML."""

from __future__ import annotations

import copy
from typing import Any, Self

import yaml

from regatta.api.errors import InvalidJob
from regatta.api.load import Loaded, load_job
from regatta.api.problems import Problem


def a_template(**container: Any) -> dict[str, Any]:
    first = {"name": "main", "command": ["python", "train.py"], **container}
    return {"spec": {"containers": [first]}}


class a_job:
    """A Collective job of two workers, until told otherwise."""

    def __init__(self, name: str = "demo") -> None:
        self.document: dict[str, Any] = {
            "apiVersion": "batch.paddlepaddle.org/v1",
            "kind": "PaddleJob",
            "metadata": {"name": name},
            "spec": {"worker": {"replicas": 2, "template": a_template()}},
        }

    def workers(self, replicas: Any, **role: Any) -> Self:
        self.document["spec"]["worker"].update({"replicas": replicas, **role})
        return self

    def with_ps(self, replicas: Any = 2, **container: Any) -> Self:
        self.document["spec"]["ps"] = {"replicas": replicas, "template": a_template(**container)}
        return self

    def with_heter(self, replicas: int = 1) -> Self:
        self.document["spec"]["heter"] = {"replicas": replicas, "template": a_template()}
        return self

    def with_tasks(self, *tasks: dict[str, Any]) -> Self:
        del self.document["spec"]["worker"]
        self.document["spec"]["tasks"] = [{"template": a_template(), **task} for task in tasks]
        return self

    def running(self, *command: str) -> Self:
        for role in ("ps", "worker"):
            if role in self.document["spec"]:
                self.container(role)["command"] = list(command)
        return self

    def spec(self, **fields: Any) -> Self:
        self.document["spec"].update(fields)
        return self

    def pod(self, **fields: Any) -> Self:
        self.document["spec"]["worker"]["template"]["spec"].update(fields)
        return self

    def with_container(self, **fields: Any) -> Self:
        self.container().update(fields)
        return self

    def misspelling(self, field: str, found: str) -> Self:
        self.document["spec"][found] = self.document["spec"].pop(field)
        return self

    def container(self, role: str = "worker") -> dict[str, Any]:
        found: dict[str, Any] = self.document["spec"][role]["template"]["spec"]["containers"][0]
        return found

    def doc(self) -> dict[str, Any]:
        return copy.deepcopy(self.document)

    def text(self, *companions: dict[str, Any]) -> str:
        return yaml.safe_dump_all([self.document, *companions], sort_keys=False)

    def load(self, **options: Any) -> Loaded:
        return load_job(self.text(), **options)


def a_pod_group(minimum: int, name: str = "demo") -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"minMember": minimum},
    }


def problems_of(text: str | bytes, **options: Any) -> list[Problem]:
    """What is wrong with a file; empty when it loads."""
    try:
        load_job(text, **options)
    except InvalidJob as invalid:
        return invalid.problems
    return []


def errors_of(job: a_job, **options: Any) -> list[str]:
    """`path: message` of each problem, without lines."""
    return [f"{p.path}: {p.message}" for p in problems_of(job.text(), **options)]
