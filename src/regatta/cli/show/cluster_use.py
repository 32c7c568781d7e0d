"""`top` on a cluster: what its nodes have, what jobs ask of them, what is measured."""

from __future__ import annotations

from regatta.cli.settings import Settings
from regatta.cli.show.table import Cell, table
from regatta.cli.show.times import size
from regatta.engines.kubernetes.engine.capacity import ClusterUse, NodeUse, ReplicaUse

#: The busiest ones; more rows than this say nothing that a sum does not.
MOST_NODES = 20


def cluster_lines(use: ClusterUse, settings: Settings, *, namespaces: bool) -> list[str]:
    lines = []
    if use.nodes:
        lines += [*_totals(use.nodes, settings), "", *_nodes(use.nodes, settings), ""]
    lines += _replicas(use.replicas, settings, namespaces=namespaces)
    return lines


def _totals(nodes: tuple[NodeUse, ...], settings: Settings) -> list[str]:
    measured = [node for node in nodes if node.cpus_used is not None]
    cpus = f"{sum(n.cpus_used or 0 for n in measured):.1f}" if measured else "-"
    memory = size(sum(n.memory_used or 0 for n in measured)) if measured else "-"
    rows: list[list[Cell]] = [
        ["cpu", _count(sum(n.cpus for n in nodes)), _count(sum(n.cpus_held for n in nodes)), cpus],
        [
            "memory",
            size(sum(n.memory_bytes for n in nodes)),
            size(sum(n.memory_held for n in nodes)),
            memory,
        ],
        ["gpu", str(sum(n.gpus for n in nodes)), str(sum(n.gpus_held for n in nodes)), "-"],
        ["replicas", str(sum(n.pods for n in nodes)), str(sum(n.pods_held for n in nodes)), "-"],
    ]
    return table(("CLUSTER", "TOTAL", "HELD", "USED"), rows, settings.paint)


def _nodes(nodes: tuple[NodeUse, ...], settings: Settings) -> list[str]:
    busiest = sorted(nodes, key=lambda node: (-node.pods_held, -node.cpus_held, node.name))
    rows: list[list[Cell]] = [
        [
            node.name,
            "Ready" if node.ready else "NotReady",
            f"{_count(node.cpus_held)}/{_count(node.cpus)}",
            f"{size(node.memory_held)}/{size(node.memory_bytes)}",
            f"{node.gpus_held}/{node.gpus}",
            f"{node.pods_held}/{node.pods}",
        ]
        for node in busiest[:MOST_NODES]
    ]
    lines = table(("NODE", "STATE", "CPU", "MEMORY", "GPU", "REPLICAS"), rows, settings.paint)
    if len(nodes) > MOST_NODES:
        lines.append(f"and {len(nodes) - MOST_NODES} more nodes")
    return lines


def _replicas(
    replicas: tuple[ReplicaUse, ...], settings: Settings, *, namespaces: bool
) -> list[str]:
    if not replicas:
        return ["No replica is running."]
    measured = any(replica.cpus_used is not None for replica in replicas)
    rows: list[list[Cell]] = [
        [
            *([replica.namespace] if namespaces else []),
            replica.job,
            replica.replica,
            replica.state,
            replica.node or "-",
            _count(replica.cpus),
            size(replica.memory_bytes),
            str(replica.gpus),
            *(_used(replica) if measured else []),
        ]
        for replica in replicas
    ]
    head = (
        *(["NAMESPACE"] if namespaces else []),
        *("JOB", "REPLICA", "STATE", "NODE", "CPU", "MEMORY", "GPU"),
        *(("CPU-USED", "MEMORY-USED") if measured else ()),
    )
    return table(head, rows, settings.paint)


def _used(replica: ReplicaUse) -> list[str]:
    used = "-" if replica.cpus_used is None else f"{replica.cpus_used:.2f}"
    return [used, size(replica.memory_used)]


def _count(cpus: float) -> str:
    return f"{round(cpus, 3):g}"
