"""What a cluster's nodes have, what jobs ask of them, and what is really used where it is measured.

"Held" is what the pods of PaddleJobs ask for. What others run on the same nodes is not counted.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec

from regatta.api.quantity import (
    GPU,
    Resources,
    limits,
    parse_count,
    parse_cpu,
    parse_memory,
    resources,
)
from regatta.controller import labels
from regatta.engines.inventory import Capacity, NodeView, ReplicaUse
from regatta.engines.kubernetes.api import models
from regatta.engines.kubernetes.api.answers import Page
from regatta.engines.kubernetes.api.client import KubeClient
from regatta.engines.kubernetes.api.kube_errors import ApiError
from regatta.engines.kubernetes.api.resources import NODES, PODS
from regatta.engines.kubernetes.objects import podstate

METRICS = "/apis/metrics.k8s.io/v1beta1"

T = TypeVar("T")


class _NodeStatus(msgspec.Struct, frozen=True):
    allocatable: dict[str, Any] = {}
    conditions: tuple[models.Condition, ...] = ()


class _Node(msgspec.Struct, frozen=True):
    metadata: models.Metadata
    status: _NodeStatus = _NodeStatus()


class _Spec(msgspec.Struct, frozen=True):
    spec: dict[str, Any] = {}


class _Pod(msgspec.Struct, frozen=True):
    """A pod with what it asks for, which the slim one leaves out."""

    pod: models.Pod
    asks: Resources
    most: Resources

    @classmethod
    def from_json(cls, text: msgspec.Raw | bytes) -> _Pod:
        whole = msgspec.json.decode(text, type=_Spec)
        template = {"spec": whole.spec}
        return cls(_slim(text), resources(template), limits(template))


class _Measured(msgspec.Struct, frozen=True):
    metadata: models.Metadata
    usage: dict[str, str] = {}


class _Container(msgspec.Struct, frozen=True):
    usage: dict[str, str] = {}


class _MeasuredPod(msgspec.Struct, frozen=True):
    metadata: models.Metadata
    containers: tuple[_Container, ...] = ()


_slim = msgspec.json.Decoder(models.Pod).decode

Used = dict[str, tuple[float, int]]


async def look(client: KubeClient, namespace: str | None, own: str) -> Capacity:
    """`namespace` (None: all) is whose replicas are listed; `own` is where the person may look
    when not everywhere."""
    notes: list[str] = []
    pods = await _everywhere(client, own, notes)
    nodes = await _nodes(client, notes)
    used_by_pods, used_by_nodes = await _measured(client, namespace)
    alive = [found for found in pods if not podstate.phase_of(found.pod).over]
    shown = [f for f in alive if namespace in (None, f.pod.metadata.namespace)]
    return Capacity(
        nodes=tuple(_node_use(node, alive, used_by_nodes) for node in nodes),
        replicas=tuple(_replica_use(found, used_by_pods) for found in shown),
        notes=tuple(notes),
    )


async def _everywhere(client: KubeClient, own: str, notes: list[str]) -> list[_Pod]:
    try:
        listing = await client.list(PODS, _Pod, label_selector=labels.UPSTREAM_ROLE)
    except ApiError as refused:
        if not refused.forbidden:
            raise
        notes.append(f"only jobs of namespace {own} are counted: you may not list pods elsewhere")
        listing = await client.list(PODS, _Pod, namespace=own, label_selector=labels.UPSTREAM_ROLE)
    return listing.items


async def _nodes(client: KubeClient, notes: list[str]) -> list[_Node]:
    try:
        return (await client.list(NODES, _Node)).items
    except ApiError as refused:
        if not refused.forbidden:
            raise
        notes.append("nodes are not shown: you may not list them")
        return []


async def _measured(client: KubeClient, namespace: str | None) -> tuple[Used, Used]:
    """By `namespace/pod` and by node; empty where no metrics-server is installed."""
    where = f"/namespaces/{namespace}" if namespace else ""
    pods = await _metrics(client, f"{METRICS}{where}/pods", _MeasuredPod)
    nodes = await _metrics(client, f"{METRICS}/nodes", _Measured)
    return (
        {pod.metadata.key: _sum(c.usage for c in pod.containers) for pod in pods},
        {node.metadata.name: _sum([node.usage]) for node in nodes},
    )


async def _metrics(client: KubeClient, path: str, kind: type[T]) -> list[T]:
    try:
        page = (await client.read_path(path)).into(Page)
    except ApiError:
        return []  # not installed, not ready, or not for us: the columns show nothing
    return [msgspec.json.decode(item, type=kind) for item in page.items or ()]


def _sum(usages: Iterable[dict[str, str]]) -> tuple[float, int]:
    cpu, memory = 0.0, 0
    for usage in usages:
        cpu += parse_cpu(usage.get("cpu", "0"))
        memory += parse_memory(usage.get("memory", "0"))
    return cpu, memory


def _node_use(node: _Node, pods: list[_Pod], used: Used) -> NodeView:
    name, has = node.metadata.name, node.status.allocatable
    here = [found for found in pods if found.pod.spec.node_name == name]
    held = Resources()
    for found in here:
        held = held + found.asks
    cpu, memory = used.get(name, (None, None))
    return NodeView(
        name=name,
        ready=any(c.type == "Ready" and c.status == "True" for c in node.status.conditions),
        cpus=parse_cpu(has.get("cpu", 0)),
        cpus_held=held.cpu,
        cpus_used=cpu,
        memory_bytes=parse_memory(has.get("memory", 0)),
        memory_held=held.memory,
        memory_used=memory,
        gpus=parse_count(has.get(GPU, 0)),
        gpus_held=held.gpus,
        pods=parse_count(has.get("pods", 0)),
        pods_held=len(here),
    )


def _replica_use(found: _Pod, used: Used) -> ReplicaUse:
    pod = found.pod
    known = pod.metadata.labels
    owner = next((o.name for o in pod.metadata.owner_references if o.controller), "")
    job = known.get(labels.JOB, owner)
    cpu, memory = used.get(pod.metadata.key, (None, None))
    return ReplicaUse(
        namespace=pod.metadata.namespace,
        job=job,
        replica=pod.metadata.name.removeprefix(f"{job}-"),
        state=podstate.phase_of(pod).value,
        node=pod.spec.node_name,
        cpus=found.asks.cpu,
        memory_bytes=found.asks.memory,
        gpus=found.asks.gpus,
        cpus_used=cpu,
        memory_used=memory,
        cpus_limit=found.most.cpu or None,
        memory_limit=found.most.memory or None,
    )
