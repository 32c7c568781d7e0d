"""What OpenPAI's clients read of virtual clusters, machines and storage."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import field


class _Shape(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """camelCase, and every field is there."""


class Amounts(_Shape, frozen=True):
    """Whole numbers; memory in MB. CPUs and GPUs are named as v2 does, and as v1 did."""

    cpu: int
    v_cores: int
    memory: int
    gpu: int
    gpus: int = field(name="GPUs")


class NodeGpus(_Shape, frozen=True):
    gpu_used: int
    gpu_available: int
    gpu_total: int


class VirtualCluster(_Shape, frozen=True):
    """Shares are in percent of all machines."""

    capacity: float
    used_capacity: float
    max_capacity: float
    dedicated: bool
    num_jobs: int
    num_active_jobs: int
    num_pending_jobs: int
    resources_used: Amounts
    resources_guaranteed: Amounts
    resources_total: Amounts
    node_list: tuple[str, ...]
    status: str = "RUNNING"


class Sku(_Shape, frozen=True):
    """What one kind of machine has; memory in MB."""

    cpu: int
    memory: int
    gpu: int


class StorageSummary(_Shape, frozen=True):
    """None is configured: jobs name the folders that they use."""

    storages: tuple[dict[str, Any], ...] = ()


class KubernetesList(_Shape, frozen=True):
    """As Kubernetes lists nodes and pods, with as much of them as is known here."""

    kind: str
    api_version: str
    items: tuple[dict[str, Any], ...]


CLUSTER_SHAPES = (VirtualCluster, NodeGpus, Sku, StorageSummary, KubernetesList)
