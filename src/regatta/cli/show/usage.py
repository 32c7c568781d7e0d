"""What `top` prints: what there is, what jobs hold of it, what is measured.

A machine by itself is one node without a name. Anything else is a cluster, whose nodes are summed
up and listed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from regatta.cli.show.ansi import Paint
from regatta.cli.show.table import Cell, table
from regatta.cli.show.times import size
from regatta.engines.inventory import Capacity, NodeView, ReplicaUse

#: The busiest ones; more rows than this say nothing that a sum does not.
MOST_NODES = 20
NOTHING_RUNS = "No replica is running."


def capacity_lines(capacity: Capacity, paint: Paint, *, namespaces: bool) -> list[str]:
    match capacity.nodes:
        case (NodeView(name="") as machine,):
            replicas = _processes(capacity.replicas, paint)
            return [*_machine(machine, paint), "", *(replicas or [_none_shown(capacity)])]
        case ():
            return _replicas(capacity.replicas, paint, namespaces=namespaces) or [NOTHING_RUNS]
        case nodes:
            replicas = _replicas(capacity.replicas, paint, namespaces=namespaces)
            above = [*_totals(nodes, paint), "", *_nodes(nodes, paint), ""]
            return [*above, *(replicas or [_none_shown(capacity)])]


def _none_shown(capacity: Capacity) -> str:
    held = sum(node.pods_held for node in capacity.nodes)
    if not held:
        return NOTHING_RUNS
    return (
        f"None of the {held} that are held is shown: they are of other namespaces (-A shows those "
        "that you may see)."
    )


# One machine


def _machine(machine: NodeView, paint: Paint) -> list[str]:
    used = "-"
    if machine.cpus_used is not None:
        used = f"{100 * machine.cpus_used / machine.cpus if machine.cpus else 0:.0f}%"
    return _summary("MACHINE", [machine], used, paint)


def _processes(replicas: Sequence[ReplicaUse], paint: Paint) -> list[str]:
    rows: list[list[Cell]] = [
        [
            replica.job,
            replica.replica,
            replica.state,
            _of(replica.cpus_used, replica.cpus_limit, lambda cpus: f"{100 * cpus:.0f}%"),
            _of(replica.memory_used, replica.memory_limit, size),
            ",".join(replica.gpu_ids) or "-",
        ]
        for replica in replicas
    ]
    head = ("JOB", "REPLICA", "STATE", "CPU", "MEMORY", "GPU")
    return table(head, rows, paint) if rows else []


# A cluster


def _totals(nodes: Sequence[NodeView], paint: Paint) -> list[str]:
    measured = [node.cpus_used for node in nodes if node.cpus_used is not None]
    return _summary("CLUSTER", nodes, f"{sum(measured):.1f}" if measured else "-", paint)


def _nodes(nodes: Sequence[NodeView], paint: Paint) -> list[str]:
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
    lines = table(("NODE", "STATE", "CPU", "MEMORY", "GPU", "REPLICAS"), rows, paint)
    if len(nodes) > MOST_NODES:
        lines.append(f"and {len(nodes) - MOST_NODES} more nodes")
    return lines


def _replicas(replicas: Sequence[ReplicaUse], paint: Paint, *, namespaces: bool) -> list[str]:
    if not replicas:
        return []
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
    return table(head, rows, paint)


def _used(replica: ReplicaUse) -> list[str]:
    return [
        _of(replica.cpus_used, replica.cpus_limit, lambda cpus: f"{cpus:.2f}"),
        _of(replica.memory_used, replica.memory_limit, size),
    ]


# Both


def _summary(title: str, nodes: Sequence[NodeView], cpus_used: str, paint: Paint) -> list[str]:
    measured = [node.memory_used for node in nodes if node.memory_used is not None]
    rows: list[list[Cell]] = [
        [
            "cpu",
            _count(sum(node.cpus for node in nodes)),
            _count(sum(node.cpus_held for node in nodes)),
            cpus_used,
        ],
        [
            "memory",
            size(sum(node.memory_bytes for node in nodes)),
            size(sum(node.memory_held for node in nodes)),
            size(sum(measured)) if measured else "-",
        ],
        ["gpu", str(sum(n.gpus for n in nodes)), str(sum(n.gpus_held for n in nodes)), "-"],
        ["replicas", str(sum(n.pods for n in nodes)), str(sum(n.pods_held for n in nodes)), "-"],
    ]
    return table((title, "TOTAL", "HELD", "USED"), rows, paint)


def _of(used: float | None, limit: float | None, shown: Callable[[float], str]) -> str:
    """`51% of 50%`, and without a limit `51%`."""
    amount = "-" if used is None else shown(used)
    return amount if limit is None else f"{amount} of {shown(limit)}"


def _count(cpus: float) -> str:
    return f"{round(cpus, 3):g}"
