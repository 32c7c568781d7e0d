"""Quantities as Kubernetes writes them, and what a pod asks for in all."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from regatta.api import quantity
from regatta.api.quantity import Resources, limits, parse_count, parse_cpu, parse_memory, resources

CPU = [
    ("500m", 0.5),
    ("2", 2.0),
    (2, 2.0),
    (0.5, 0.5),
    ("1e3", 1000.0),
    ("100u", 0.0001),
    ("0", 0.0),
]
MEMORY = [
    ("128974848", 128974848),
    ("1Ki", 2**10),
    ("1Mi", 2**20),
    ("1Gi", 2**30),
    ("1.5Gi", 3 * 2**29),
    ("1Ti", 2**40),
    ("1Pi", 2**50),
    ("1Ei", 2**60),
    ("129k", 129_000),
    ("129M", 129_000_000),
    ("2G", 2 * 10**9),
    ("1T", 10**12),
    ("1P", 10**15),
    ("1E", 10**18),
    ("12e6", 12_000_000),
    ("1E3", 1000),
    ("128974848000m", 128974848),
    ("1m", 1),
    (1024, 1024),
]
WRONG = {
    "eight": "write a number",
    "4gb": 'did you mean "4Gi"?',
    "8GB": 'did you mean "8Gi"?',
    "1K": 'did you mean "1k" (times 1,000) or "1Ki" (times 1,024)?',
    "2 cores": 'did you mean "2"?',
    "-1": "cannot be negative",
    "1e99": "larger than Kubernetes can count",
    "9" * 500: "write a number",
    "": "write a number",
    "1Gi ": "write a number",
    "٣": "write a number",
}


@pytest.mark.parametrize(("text", "cores"), CPU)
def test_cpu_is_read_in_cores(text: object, cores: float) -> None:
    assert parse_cpu(text) == cores


@pytest.mark.parametrize(("text", "size"), MEMORY)
def test_memory_is_read_in_bytes(text: object, size: int) -> None:
    assert parse_memory(text) == size


@pytest.mark.parametrize(("text", "sentence"), WRONG.items())
def test_what_is_no_quantity_says_what_would_be(text: str, sentence: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse_memory(text)
    assert sentence in str(caught.value)


@pytest.mark.parametrize("value", [True, None, [], {}, float("nan"), float("inf")])
def test_other_values_are_refused_too(value: object) -> None:
    with pytest.raises(ValueError):
        parse_cpu(value)


def test_half_a_gpu_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot be split"):
        parse_count("500m")


def ask(kind: str = "requests", **amounts: Any) -> dict[str, Any]:
    named = {"gpu": "nvidia.com/gpu"}
    return {"resources": {kind: {named.get(key, key): value for key, value in amounts.items()}}}


PODS: dict[str, tuple[dict[str, Any], Resources]] = {
    "nothing asked is nothing": ({"containers": [{}]}, Resources()),
    "an empty template asks for nothing": ({}, Resources()),
    "containers add up": (
        {"containers": [ask(cpu="500m", memory="1Gi"), ask(cpu=1)]},
        Resources(1.5, 2**30, 0),
    ),
    "a limit stands in for a missing request": (
        {"containers": [ask("limits", cpu=2, gpu=1)]},
        Resources(2, 0, 1),
    ),
    "a request wins over its limit": (
        {"containers": [{"resources": {"requests": {"cpu": 1}, "limits": {"cpu": 4}}}]},
        Resources(1, 0, 0),
    ),
    "the largest init container raises the total": (
        {"initContainers": [ask(cpu=4), ask(memory="2Gi")], "containers": [ask(cpu=1)]},
        Resources(4, 2**31, 0),
    ),
    "a sidecar stays and adds up": (
        {
            "initContainers": [{**ask(cpu=1), "restartPolicy": "Always"}, ask(cpu=3)],
            "containers": [ask(cpu=2)],
        },
        Resources(4, 0, 0),
    ),
    "the pod's own request is the whole": (
        {**ask(cpu=3), "containers": [ask(cpu=1, memory="1Gi")]},
        Resources(3, 2**30, 0),
    ),
}


@pytest.mark.parametrize(("pod", "total"), PODS.values(), ids=PODS)
def test_a_pod_asks_for_what_the_scheduler_would_count(
    pod: dict[str, Any], total: Resources
) -> None:
    assert resources({"spec": pod}) == total


LIMITS: dict[str, tuple[dict[str, Any], Resources]] = {
    "no limit is none": ({"containers": [ask(cpu=1, memory="1Gi")]}, Resources()),
    "limits of containers add up": (
        {"containers": [ask("limits", cpu="500m", memory="1Gi"), ask("limits", cpu=1)]},
        Resources(1.5, 0, 0),
    ),
    "a request does not lower a limit": (
        {"containers": [{"resources": {"requests": {"cpu": 1}, "limits": {"cpu": 4}}}]},
        Resources(4, 0, 0),
    ),
    "an init container without a limit has none, and so has the pod": (
        {"initContainers": [{}], "containers": [ask("limits", memory="1Gi")]},
        Resources(),
    ),
    "the largest init container raises it": (
        {
            "initContainers": [ask("limits", memory="2Gi")],
            "containers": [ask("limits", memory="1Gi")],
        },
        Resources(0, 2**31, 0),
    ),
    "the pod's own limit is the whole": (
        {**ask("limits", memory="3Gi"), "containers": [ask("limits", cpu=1)]},
        Resources(1, 3 * 2**30, 0),
    ),
}


@pytest.mark.parametrize(("pod", "total"), LIMITS.values(), ids=LIMITS)
def test_a_pod_may_use_what_a_kubelet_would_let_it(pod: dict[str, Any], total: Resources) -> None:
    assert limits({"spec": pod}) == total


def test_resources_add_up_and_multiply() -> None:
    each = Resources(0.1, 10, 1)
    assert each + each + each == each.times(3) == Resources(0.3, 30, 3)


def test_job_and_quantity_are_cheap_to_import() -> None:
    program = (
        "import sys, regatta.api.job, regatta.api.quantity, regatta.api.source.companions\n"
        "print([name for name in ('pydantic', 'yaml', 'jsonschema_rs') if name in sys.modules])"
    )
    answer = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("number", "text"),
    [(0.5, "0.5"), (2.0, "2"), (10, "10"), (0.0, "0"), (3.3e-298, "0"), (1e15, "1000000000000000")],
)
def test_a_number_is_written_as_text_that_means_the_same(number: float, text: str) -> None:
    assert quantity.written(number) == text
    assert quantity.parse(quantity.written(number)) == quantity.parse(number)
