"""A dry run on a cluster: what the operator would create, with names for what it cannot know."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import yaml

from regatta.controller.plan import Instant
from regatta.engines.base import Preview, Submission
from regatta.engines.kubernetes.engine import paper, submit

NOW = Instant(datetime(2026, 1, 1, tzinfo=UTC), 0.0)


def shown(env: list[dict[str, Any]] | None = None, **spec: Any) -> Preview:
    container = {"name": "main", "image": "x", "env": env or []}
    worker = {"replicas": 2, "template": {"spec": {"containers": [container]}}}
    document = {
        "apiVersion": "batch.paddlepaddle.org/v1",
        "kind": "PaddleJob",
        "metadata": {"name": "mnist"},
        "spec": {"worker": worker, **spec},
    }
    loaded = submit.read(Submission(text=yaml.safe_dump(document)), "team")
    return paper.preview(loaded, NOW)


def test_every_object_is_shown_and_addresses_have_names() -> None:
    preview = shown()

    made = [(thing["kind"], thing["metadata"]["namespace"]) for thing in preview.objects]
    assert made == [("Pod", "team"), ("Pod", "team"), ("ConfigMap", "team")]
    assert preview.environment["mnist-worker-1"]["PADDLE_TRAINERS"] == (
        "<mnist-worker-0>,<mnist-worker-1>"
    )
    assert "<mnist-worker-0> stands for the address of the pod mnist-worker-0, and so on" in (
        preview.notes
    )
    assert preview.ports == dict.fromkeys(("mnist-worker-0", "mnist-worker-1"), (20000, 20019))


def test_a_suspended_job_is_shown_as_it_would_run() -> None:
    assert len(shown(runPolicy={"suspend": True}).environment) == 2


def test_services_come_before_pods_and_replace_addresses() -> None:
    preview = shown(intranet="Service")

    kinds = [thing["kind"] for thing in preview.objects]
    assert kinds == sorted(kinds, key=["Service", "Pod", "ConfigMap"].index)
    assert preview.environment["mnist-worker-0"]["PADDLE_TRAINERS"] == (
        "mnist-worker-0,mnist-worker-1"
    )


def test_variables_are_put_together_as_the_kubelet_does() -> None:
    env: list[dict[str, Any]] = [
        {"name": "RANK", "value": "r$(PADDLE_TRAINER_ID)"},
        {"name": "PLAIN", "value": "$$(RANK) $(NOBODY)"},
        {"name": "ME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "s3", "key": "token"}}},
    ]

    seen = shown(env).environment["mnist-worker-1"]

    assert {name: seen[name] for name in ("RANK", "PLAIN", "ME", "KEY")} == {
        "RANK": "r1",
        "PLAIN": "$(RANK) $(NOBODY)",
        "ME": "mnist-worker-1",
        "KEY": "<token of s3>",
    }
