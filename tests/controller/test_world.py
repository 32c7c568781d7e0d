"""What the brain is shown."""

from __future__ import annotations

import pytest

from regatta.api.job import Intranet
from regatta.controller.world import (
    Children,
    Pod,
    PodGroup,
    PodPhase,
    Ports,
    meets_by_name,
    port_block,
)
from tests.controller.builders import a_job

PORTS: dict[str, tuple[Ports, tuple[int, int], int]] = {
    "one replica a host": (Ports(), (3, 1), 20000),
    "replicas that share a host": (Ports(base=20100, stride=20), (3, 1), 20160),
    "roles that share a host": (Ports(role_stride=20), (3, 2), 20040),
}


@pytest.mark.parametrize(("ports", "place", "first"), PORTS.values(), ids=PORTS)
def test_port_blocks_are_apart_where_they_share_a_host(
    ports: Ports, place: tuple[int, int], first: int
) -> None:
    assert ports.of(*place) == first
    assert port_block(first) == (first, first + 19)


@pytest.mark.parametrize(
    ("intranet", "names_only", "by_name"),
    [
        (Intranet.SERVICE, False, True),
        (Intranet.POD_IP, False, False),
        (Intranet.HOST, False, False),
        (Intranet.POD_IP, True, True),
    ],
)
def test_peers_meet_by_name_if_the_job_or_the_cluster_wants_it(
    intranet: Intranet, names_only: bool, by_name: bool
) -> None:
    job = a_job().with_workers(1).intranet(intranet).obj()
    assert meets_by_name(job, names_only) is by_name


def test_only_what_has_ended_is_over() -> None:
    assert {phase for phase in PodPhase if phase.over} == {PodPhase.SUCCEEDED, PodPhase.FAILED}


def test_phases_are_called_as_people_know_them() -> None:
    assert [str(phase) for phase in PodPhase] == [
        "Pending",
        "Starting",
        "Running",
        "Succeeded",
        "Failed",
        "Unknown",
    ]


def test_what_an_engine_does_not_say_is_not_so() -> None:
    pod = Pod(name="p", uid="u")
    assert (pod.role, pod.index, pod.attempt, pod.revision) == ("", 0, 0, 0)
    group = PodGroup(name="g")
    assert (group.ours, group.min_member) == (False, 0)
    assert not Children().hears_progress
