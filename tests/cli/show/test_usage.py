"""What `top` prints of a machine and of a cluster."""

from __future__ import annotations

import re
from typing import Any

import pytest

from regatta.cli.show.ansi import Paint
from regatta.cli.show.usage import MOST_NODES, capacity_lines
from regatta.engines.inventory import Capacity, NodeView, ReplicaUse

GIB = 1024**3


def a_node(name: str, **more: Any) -> NodeView:
    held = {"cpus_held": 1.5, "memory_held": GIB, "gpus_held": 1, "pods_held": 2}
    whole = {"cpus": 4.0, "memory_bytes": 8 * GIB, "gpus": 2, "pods": 110}
    return NodeView(**{"name": name, **whole, **held, **more})


def a_replica(**more: Any) -> ReplicaUse:
    known = {"namespace": "team", "job": "one", "replica": "worker-0", "state": "Running"}
    return ReplicaUse(**{**known, "cpus": 0.5, "memory_bytes": GIB, "gpus": 0, **more})


def lines(*nodes: NodeView, replicas: tuple[ReplicaUse, ...] = (), every: bool = False) -> str:
    capacity = Capacity(nodes=nodes, replicas=replicas)
    return "\n".join(capacity_lines(capacity, Paint(False), namespaces=every))


def test_a_node_without_a_name_is_this_machine() -> None:
    machine = a_node("", cpus_used=1.0, memory_used=2 * GIB)
    replica = a_replica(cpus_used=1.07, memory_used=GIB // 2, gpu_ids=("0", "3"))

    assert lines(machine, replicas=(replica,)) == (
        "MACHINE    TOTAL    HELD     USED\n"
        "cpu        4        1.5      25%\n"
        "memory     8.0GiB   1.0GiB   2.0GiB\n"
        "gpu        2        1        -\n"
        "replicas   110      2        -\n"
        "\n"
        "JOB   REPLICA    STATE     CPU    MEMORY   GPU\n"
        "one   worker-0   Running   107%   512MiB   0,3"
    )


def test_a_replica_that_is_not_measured_yet_has_dashes() -> None:
    page = lines(a_node(""), replicas=(a_replica(),))

    assert page.splitlines()[-1] == "one   worker-0   Running   -     -        -"


def test_what_a_replica_uses_stands_beside_its_limit() -> None:
    bounded = {"cpus_limit": 0.5, "memory_limit": 64 << 20}
    used = {"cpus_used": 0.51, "memory_used": 40 << 20, **bounded}

    def cells(node: str, **replica: Any) -> list[str]:
        return re.split(
            " {3,}", lines(a_node(node), replicas=(a_replica(**replica),)).split("\n")[-1]
        )

    assert cells("", **used)[3:5] == ["51% of 50%", "40MiB of 64MiB"]
    assert cells("", **bounded)[3:5] == ["- of 50%", "- of 64MiB"]
    assert cells("n1", **used)[-2:] == ["0.51 of 0.50", "40MiB of 64MiB"]


def test_a_machine_where_nothing_runs_says_so() -> None:
    assert lines(a_node("", pods_held=0)).endswith("\n\nNo replica is running.")


@pytest.mark.parametrize("node", ["", "n1"], ids=["a machine", "a cluster"])
def test_where_others_hold_what_is_held_it_is_not_said_that_nothing_runs(node: str) -> None:
    said = lines(a_node(node, pods_held=3)).splitlines()[-1]

    assert said.startswith("None of the 3 that are held is shown: they are of other namespaces")


def test_nodes_with_names_are_a_cluster() -> None:
    page = lines(a_node("n1"), a_node("n2", ready=False), replicas=(a_replica(node="n1"),))

    assert page == (
        "CLUSTER    TOTAL     HELD     USED\n"
        "cpu        8         3        -\n"
        "memory     16.0GiB   2.0GiB   -\n"
        "gpu        4         2        -\n"
        "replicas   220       4        -\n"
        "\n"
        "NODE   STATE      CPU     MEMORY          GPU   REPLICAS\n"
        "n1     Ready      1.5/4   1.0GiB/8.0GiB   1/2   2/110\n"
        "n2     NotReady   1.5/4   1.0GiB/8.0GiB   1/2   2/110\n"
        "\n"
        "JOB   REPLICA    STATE     NODE   CPU   MEMORY   GPU\n"
        "one   worker-0   Running   n1     0.5   1.0GiB   0"
    )


def test_what_a_cluster_measures_is_summed_and_shown() -> None:
    nodes = (a_node("n1", cpus_used=1.04, memory_used=GIB), a_node("n2"))

    page = lines(*nodes, replicas=(a_replica(cpus_used=0.25, memory_used=GIB),), every=True)

    assert "cpu        8         3        1.0" in page
    assert "memory     16.0GiB   2.0GiB   1.0GiB" in page
    assert "NAMESPACE   JOB" in page
    assert page.endswith("0.25       1.0GiB")


def test_without_the_right_to_see_nodes_there_are_replicas_only() -> None:
    assert lines(replicas=(a_replica(),)).startswith("JOB")
    assert lines() == "No replica is running."


def test_the_busiest_nodes_are_shown_and_the_others_counted() -> None:
    nodes = [a_node(f"n{i:02}", pods_held=i) for i in range(MOST_NODES + 3)]

    page = lines(*nodes)

    assert "and 3 more nodes" in page
    assert "n22" in page
    assert "n02 " not in page
