"""What one of OpenPAI's configs asks for where tasks run in containers of this machine."""

from __future__ import annotations

import json
from typing import Any

import pytest

from regatta.api.load import load_job
from regatta.engines.local.store.records import Context
from regatta.engines.local.submit.ignored import ignored_of_config
from tests.api.openpai.configs import v2

CONFIG = v2(
    role={"extraContainerOptions": {"shmMB": 80}},
    image={"auth": {"username": "ada", "password": "x"}},
)
POD = "spec.tasks[0].template.spec"


def ignored(**context: Any) -> dict[str, str]:
    found = ignored_of_config(load_job(json.dumps(CONFIG)).job, Context(**context))
    return {problem.path: problem.message for problem in found}


@pytest.mark.parametrize(
    ("context", "places"),
    [
        ({}, [f"{POD}.imagePullSecrets", f"{POD}.volumes"]),
        ({"runtime": "podman"}, [f"{POD}.imagePullSecrets", f"{POD}.volumes"]),
        ({"runtime": "podman", "folders": ()}, [f"{POD}.imagePullSecrets"]),
    ],
    ids=["no container", "one's own containers", "containers of people who share the machine"],
)
def test_only_a_container_of_its_own_kind_bounds_shared_memory(
    context: dict[str, Any], places: list[str]
) -> None:
    assert list(ignored(**context)) == places


@pytest.mark.parametrize(
    ("runtime", "why"), [("none", "no image is pulled"), ("podman", "podman pulls images as")]
)
def test_who_pulls_images_instead_is_said(runtime: str, why: str) -> None:
    assert why in ignored(runtime=runtime)[f"{POD}.imagePullSecrets"]
