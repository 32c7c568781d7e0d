"""What a replica asks for, as far as its environment depends on it."""

from __future__ import annotations

from typing import Any

import pytest

from regatta.api.job import RoleSpec
from regatta.controller.environment.places import gpus, has_device
from tests.controller.builders import a_job
from tests.controller.environment.seeing import environments

GPU = "nvidia.com/gpu"


@pytest.mark.parametrize(
    ("asked", "backend"),
    [
        ({"nvidia.com/gpu": 1}, None),
        ({"nvidia.com/gpu.shared": "1"}, None),
        ({"nvidia.com/mig-1g.5gb": 1}, None),
        ({"huawei.com/Ascend910": 8}, None),
        ({"kunlunxin.com/xpu": 1}, None),
        ({"nvidia.com/gpu": 0}, "gloo"),
        ({"cpu": 4, "memory": "8Gi", "ephemeral-storage": "1Gi", "hugepages-2Mi": "4Mi"}, "gloo"),
        ({"attachable-volumes.kubernetes.io/csi": 1, "kubernetes.io/batch-cpu": 1}, "gloo"),
    ],
)
@pytest.mark.parametrize("kind", ["limits", "requests"])
def test_only_a_worker_that_asks_for_no_device_of_any_vendor_is_told_to_use_gloo(
    asked: dict[str, Any], backend: str | None, kind: str
) -> None:
    containers = [{"name": "main", "resources": {kind: asked}}, {"name": "sidecar"}]

    own = environments(a_job().with_workers(2, {"spec": {"containers": containers}}))["j-worker-0"]

    assert own.get("PADDLE_DISTRI_BACKEND") == backend


@pytest.mark.parametrize("template", [{}, {"spec": {}}, {"spec": {"containers": None}}])
def test_what_has_no_containers_asks_for_no_device(template: dict[str, Any]) -> None:
    assert not has_device(RoleSpec(replicas=1, template=template))


def asking(**asked: Any) -> dict[str, Any]:
    return {"name": "main", "resources": {"limits": asked}}


GPUS: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]], int]] = {
    "whole ones": ([asking(**{GPU: 2})], [], 2),
    "in text": ([asking(**{GPU: "2"})], [], 2),
    "with a suffix": ([asking(**{GPU: "2000m"})], [], 2),
    "not slices of one": ([asking(**{GPU: 2, "nvidia.com/mig-1g.5gb": 4})], [], 2),
    "of all containers": ([asking(**{GPU: 2}), asking(**{GPU: 1})], [], 3),
    "of the greediest start": ([asking(**{GPU: 1})], [asking(**{GPU: 4})], 4),
    "none": ([asking(cpu=1)], [], 0),
    "no amount at all, from before the rules": ([asking(**{GPU: "many"})], [], 0),
    "a part of one, from before the rules": ([asking(**{GPU: 0.5})], [], 0),
}


@pytest.mark.parametrize(("containers", "starting", "count"), GPUS.values(), ids=GPUS)
def test_gpus_are_counted_as_a_scheduler_counts_them(
    containers: list[dict[str, Any]], starting: list[dict[str, Any]], count: int
) -> None:
    template = {"spec": {"containers": containers, "initContainers": starting}}

    assert gpus(RoleSpec(replicas=1, template=template)) == count
