"""What a cluster wants of a job that a machine does not."""

from __future__ import annotations

import pytest

from regatta.api.errors import InvalidJob
from regatta.engines.base import Submission
from regatta.engines.kubernetes.engine.submit import read
from tests.api.builders import a_job


def refusal(job: a_job) -> list[str]:
    with pytest.raises(InvalidJob) as refused:
        read(Submission(text=job.text()), "default")
    return [f"{problem.path}: {problem.message}" for problem in refused.value.problems]


WANTED = "missing; a cluster runs images: name the one that holds the program"


def test_a_container_without_an_image_is_named() -> None:
    job = a_job().with_ps(image="paddle:1")
    job.pod(initContainers=[{"name": "first", "command": ["true"]}])
    place = "spec.worker.template.spec"
    assert refusal(job) == [
        f"{place}.initContainers[0].image: {WANTED}",
        f"{place}.containers[0].image: {WANTED}",
    ]


def test_a_task_without_an_image_is_named_by_its_place() -> None:
    job = a_job().with_tasks({"name": "a", "replicas": 1}, {"name": "b", "replicas": 1})
    job.document["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["image"] = "paddle:1"
    assert refusal(job) == [f"spec.tasks[1].template.spec.containers[0].image: {WANTED}"]


def test_an_image_alone_is_enough() -> None:
    job = a_job()
    job.container().pop("command")
    job.container()["image"] = "paddle:1"
    assert read(Submission(text=job.text()), "default").job.name == "demo"
