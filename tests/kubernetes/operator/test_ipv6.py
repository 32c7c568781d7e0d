"""A cluster whose addresses are IPv6: Paddle splits on the first colon, so peers get names."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kubernetes.conftest import StartPlane
from tests.kubernetes.operator.builders import a_job
from tests.kubernetes.operator.conftest import install_crd
from tests.kubernetes.operator.running import Jobs, RunningOperator


@pytest.fixture
def jobs(start_plane: StartPlane) -> Iterator[Jobs]:
    plane = start_plane(ipv6=True)
    plane.nodes.create(3, ipv6=True)
    install_crd(plane)
    with RunningOperator(plane.admin_kubeconfig, init_image="busybox:1"):
        yield Jobs(plane, plane.create_namespace("v6"))


def test_peers_are_given_names_whatever_the_intranet(jobs: Jobs) -> None:
    """K17: the environment of such a job was never written, and it waited for ever."""
    modes = {"plain": "PodIP", "named": "Service", "host": "Host"}
    for name, intranet in modes.items():
        jobs.create(a_job(name).with_ps(1).workers(2).spec(intranet=intranet, withGloo=1))
    for name, intranet in modes.items():
        jobs.wait_for_phase(name, "Running")
        pods = jobs.pods(name)
        assert all(":" in pod["status"]["podIP"] for pod in pods.values())
        assert all(
            bool(p["spec"].get("hostNetwork")) == (intranet == "Host") for p in pods.values()
        )
        told = jobs.wait_for_environment(name, 1)
        assert told["PADDLE_TRAINERS"] == f"{name}-worker-0,{name}-worker-1"
        for variable in ("PADDLE_TRAINER_ENDPOINTS", "PADDLE_PSERVERS_IP_PORT_LIST"):
            for endpoint in told[variable].split(","):
                host, port = endpoint.split(":")  # all that Paddle can take apart
                assert host in pods
                assert port.isdecimal()
        first = jobs.pods(name)[f"{name}-worker-0"]["spec"]["initContainers"][0]
        assert first["command"][-3:] == [f"{name}-ps-0", f"{name}-worker-0", f"{name}-worker-1"]
