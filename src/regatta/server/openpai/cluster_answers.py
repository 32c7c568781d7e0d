"""Virtual clusters, machines and replicas, in the shapes that OpenPAI's clients read. Pure.

A virtual cluster here is a queue that some may use and others not; machines are not divided among
them, so each could use all there is, and tells what its own jobs hold of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from regatta.api.quantity import GPU
from regatta.engines.inventory import Capacity, NodeView, ReplicaUse
from regatta.server.openpai.cluster_shapes import (
    Amounts,
    KubernetesList,
    NodeGpus,
    Sku,
    VirtualCluster,
)
from regatta.server.openpai_states import State
from regatta.server.records.job_story import LiveJob

MEGABYTE = 2**20
#: What a machine is called that needs no name among others.
THIS_MACHINE = "localhost"


def clusters(
    names: Iterable[str], capacity: Capacity, live: Sequence[LiveJob]
) -> dict[str, VirtualCluster]:
    where = {(job.namespace, job.engine_name): job.virtual_cluster for job in live}
    total = _amounts(
        sum(node.cpus for node in capacity.nodes),
        sum(node.memory_bytes for node in capacity.nodes),
        sum(node.gpus for node in capacity.nodes),
    )
    return {
        name: _cluster(
            total,
            [one for one in capacity.replicas if where.get((one.namespace, one.job)) == name],
            [job for job in live if job.virtual_cluster == name],
            capacity.nodes,
        )
        for name in names
    }


def _cluster(
    total: Amounts,
    replicas: Sequence[ReplicaUse],
    live: Sequence[LiveJob],
    nodes: Sequence[NodeView],
) -> VirtualCluster:
    used = _amounts(
        sum(one.cpus for one in replicas),
        sum(one.memory_bytes for one in replicas),
        sum(one.gpus for one in replicas),
    )
    scarce = (used.gpu, total.gpu) if total.gpu else (used.cpu, total.cpu)
    waiting = sum(job.state == State.WAITING for job in live)
    return VirtualCluster(
        capacity=100.0,
        max_capacity=100.0,
        used_capacity=round(100 * scarce[0] / scarce[1], 2) if scarce[1] else 0.0,
        dedicated=False,
        num_jobs=len(live),
        num_active_jobs=len(live) - waiting,
        num_pending_jobs=waiting,
        resources_used=used,
        resources_guaranteed=total,
        resources_total=total,
        node_list=tuple(node.name or THIS_MACHINE for node in nodes),
    )


def gpus_by_node(nodes: Iterable[NodeView]) -> dict[str, NodeGpus]:
    return {
        node.name or THIS_MACHINE: NodeGpus(
            gpu_used=node.gpus_held,
            gpu_available=max(node.gpus - node.gpus_held, 0),
            gpu_total=node.gpus,
        )
        for node in nodes
    }


def skus(nodes: Iterable[NodeView]) -> dict[str, Sku]:
    """One for each kind of machine, by what it has."""
    kinds = [
        Sku(cpu=int(node.cpus), memory=node.memory_bytes // MEGABYTE, gpu=node.gpus)
        for node in nodes
    ]
    return {f"{kind.gpu}gpu-{kind.cpu}cpu-{kind.memory}mb": kind for kind in kinds}


def node_list(nodes: Iterable[NodeView]) -> KubernetesList:
    return KubernetesList(
        kind="NodeList", api_version="v1", items=tuple(_node(node) for node in nodes)
    )


def pod_list(replicas: Iterable[ReplicaUse], namespace: str | None) -> KubernetesList:
    shown = [one for one in replicas if namespace in (None, "", one.namespace)]
    return KubernetesList(kind="PodList", api_version="v1", items=tuple(_pod(one) for one in shown))


def _node(node: NodeView) -> dict[str, Any]:
    has = {
        "cpu": f"{node.cpus:g}",
        "memory": str(node.memory_bytes),
        GPU: str(node.gpus),
        "pods": str(node.pods),
    }
    ready = {"type": "Ready", "status": "True" if node.ready else "False"}
    return {
        "metadata": {"name": node.name or THIS_MACHINE},
        "status": {"capacity": has, "allocatable": has, "conditions": [ready]},
    }


def _pod(one: ReplicaUse) -> dict[str, Any]:
    asks = {"cpu": f"{one.cpus:g}", "memory": str(one.memory_bytes), GPU: str(one.gpus)}
    container = {"name": "main", "resources": {"requests": asks}}
    return {
        "metadata": {"name": f"{one.job}-{one.replica}", "namespace": one.namespace},
        "spec": {"nodeName": one.node or THIS_MACHINE, "containers": [container]},
        "status": {"phase": one.state},
    }


def _amounts(cpus: float, memory_bytes: int, gpus: int) -> Amounts:
    whole = math.ceil(cpus)
    return Amounts(cpu=whole, v_cores=whole, memory=memory_bytes // MEGABYTE, gpu=gpus, gpus=gpus)
