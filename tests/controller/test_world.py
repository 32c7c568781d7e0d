"""What the brain is shown."""

from __future__ import annotations

import pytest

from regatta.api.job import Intranet
from regatta.controller.world import PodPhase, Ports, meets_by_name, port_block
from tests.controller.builders import a_job

PORTS: dict[str, tuple[Ports, tuple[int, int], int]] = {
    "one replica a host": (Ports(), (3, 1), 20000),
    "replicas that share a host": (Ports(base=20100, stride=20), (3, 1), 20160),
    "roles that share a host": (Ports(role_stride=20), (3, 1), 20020),
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
