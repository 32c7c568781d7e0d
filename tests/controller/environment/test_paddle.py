"""What a replica of a training job reads, for each mode and network."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from regatta.api.job import Intranet
from tests.controller.builders import Scene, a_job, a_scene
from tests.controller.environment.seeing import environments


def test_a_server_finds_itself_in_the_list_of_servers() -> None:
    for services in (False, True):
        intranet = Intranet.SERVICE if services else Intranet.POD_IP
        seen = environments(a_job().with_ps(2).with_workers(2).intranet(intranet), services)
        for index in range(2):
            own = seen[f"j-ps-{index}"]
            endpoints = own["PADDLE_PSERVERS_IP_PORT_LIST"].split(",")
            assert endpoints[index] == f"{own['POD_IP']}:{own['PADDLE_PORT']}"
            assert own["TRAINING_ROLE"] == own["PADDLE_TRAINING_ROLE"] == "PSERVER"


def test_a_worker_finds_itself_in_the_list_of_trainers() -> None:
    seen = environments(a_job().with_workers(3))

    for index in range(3):
        own = seen[f"j-worker-{index}"]
        assert own["PADDLE_TRAINER_ENDPOINTS"].split(",")[index] == own["PADDLE_CURRENT_ENDPOINT"]
        assert own["PADDLE_TRAINER_ID"] == own["TRAINER_ID"] == str(index)
        assert own["PADDLE_TRAINERS_NUM"] == own["PADDLE_NNODES"] == own["TRAINERS"] == "3"
        assert own["PADDLE_MASTER"] == own["PADDLE_TRAINER_ENDPOINTS"].split(",")[0]
        assert own["PADDLE_DISTRI_BACKEND"] == "gloo"


def test_replicas_on_one_host_own_blocks_of_twenty_ports() -> None:
    seen = environments(a_job().with_ps(1).with_workers(2))

    ports = [int(seen[name]["PADDLE_PORT"]) for name in ("j-ps-0", "j-worker-0", "j-worker-1")]
    assert ports == [20000, 20020, 20040]


def test_service_names_are_the_hosts_where_peers_are_reached_by_name() -> None:
    builder = a_job().with_ps(1).with_workers(1).intranet(Intranet.SERVICE)

    own = environments(builder, services=True, stride=0)["j-ps-0"]

    assert own["PADDLE_PSERVERS_IP_PORT_LIST"] == "j-ps-0:20000"
    assert own["POD_IP"] == "j-ps-0"


@pytest.mark.parametrize("level", [1, 2])
def test_gloo_meets_on_a_port_that_is_not_server_zeros_own(level: int) -> None:
    own = environments(a_job().with_ps(1).with_workers(1).gloo(level))["j-worker-0"]

    assert own["PADDLE_WITH_GLOO"] == str(level)
    assert own["PADDLE_GLOO_RENDEZVOUS"] == "3"
    assert own["PADDLE_GLOO_HTTP_ENDPOINT"] == "127.64.0.1:20018"


def test_gloo_off_sets_no_meeting_point() -> None:
    own = environments(a_job().with_ps(1).with_workers(1).gloo(0))["j-worker-0"]

    assert own["PADDLE_WITH_GLOO"] == "0"
    assert "PADDLE_GLOO_HTTP_ENDPOINT" not in own


def test_gloo_has_no_variables_in_a_collective_job() -> None:
    own = environments(a_job().with_workers(2).gloo(1))["j-worker-0"]

    assert not [name for name in own if "GLOO" in name]


def test_heter_trainers_get_the_names_paddles_role_maker_reads() -> None:
    seen = environments(a_job().with_ps(1).with_workers(1).with_heter(1))

    worker, heter = seen["j-worker-0"], seen["j-heter-0"]
    assert heter["TRAINING_ROLE"] == "HETER_TRAINER"
    assert (worker["STAGE_ID"], heter["STAGE_ID"], heter["STAGE_NUM"]) == ("1", "2", "2")
    own = f"{heter['POD_IP']}:{heter['PADDLE_PORT']}"
    assert worker["PADDLE_ALL_HETER_TRAINER_IP_PORT_LIST"] == own
    assert heter["HETER_DEVICE_TYPE"] == "cpu"


def test_a_replica_of_a_ps_job_reads_exactly_this() -> None:
    own = environments(a_job("ctr").with_ps(1).with_workers(2))["ctr-worker-1"]

    assert own == {
        "PADDLE_JOB_ID": "ctr",
        "PADDLE_TRAINERS_NUM": "2",
        "PADDLE_TRAINERS": "127.64.0.2,127.64.0.3",
        "PADDLE_TRAINER_ENDPOINTS": "127.64.0.2:20020,127.64.0.3:20040",
        "PADDLE_MASTER": "127.64.0.2:20020",
        "PADDLE_NNODES": "2",
        "TRAINER_PORTS_NUM": "20",
        "TRAINERS": "2",
        "PSERVERS": "1",
        "PADDLE_PSERVERS_IP_PORT_LIST": "127.64.0.1:20000",
        "PADDLE_WITH_GLOO": "1",
        "PADDLE_GLOO_RENDEZVOUS": "3",
        "PADDLE_GLOO_HTTP_ENDPOINT": "127.64.0.1:20018",
        "POD_IP": "127.64.0.3",
        "PADDLE_PORT": "20040",
        "PADDLE_CURRENT_ENDPOINT": "127.64.0.3:20040",
        "PADDLE_TRAINER_ID": "1",
        "TRAINER_ID": "1",
        "TRAINING_ROLE": "TRAINER",
        "PADDLE_TRAINING_ROLE": "TRAINER",
        "PADDLE_DISTRI_BACKEND": "gloo",
    }


def test_the_stages_of_a_heter_job_know_each_other() -> None:
    seen = environments(a_job().with_ps(1).with_workers(2).with_heter(1))

    workers, heter = "127.64.0.3:20040,127.64.0.4:20060", "127.64.0.2:20020"
    assert {name: seen["j-heter-0"][name] for name in seen["j-heter-0"] if "STAGE" in name} == {
        "PADDLE_STAGE_TRAINERS_NUM": "[2, 1]",
        "STAGE_NUM": "2",
        "STAGE_ID": "2",
    }
    for own in seen.values():
        assert own["PADDLE_NEXT_HETER_TRAINER_IP_PORT_LIST"] == heter
        assert own["PADDLE_PREVIOUS_HETER_TRAINER_IP_PORT_LIST"] == workers
    for server_or_worker in ("j-ps-0", "j-worker-0"):
        assert "HETER_DEVICE_TYPE" not in seen[server_or_worker]
    assert "STAGE_ID" not in seen["j-ps-0"]


@pytest.mark.parametrize(("gpus", "device"), [(0, "cpu"), (1, "gpu")])
def test_a_heter_trainer_says_what_it_computes_on(gpus: int, device: str) -> None:
    builder = a_job().with_ps(1).with_workers(1).with_heter(1)
    job = builder.obj()
    assert job.spec.heter is not None
    limits = {"resources": {"limits": {"nvidia.com/gpu": gpus}}}
    asking = {"spec": {"containers": [{"name": "main", **limits}]}}
    job = replace(job, spec=replace(job.spec, heter=replace(job.spec.heter, template=asking)))

    pod = next(pod for pod in Scene(job).tick().pods if pod.role == "heter")

    env = pod.manifest["spec"]["containers"][0]["env"]
    assert {"name": "HETER_DEVICE_TYPE", "value": device} in env


def test_an_ordinary_job_has_no_stages() -> None:
    own = environments(a_job().with_ps(1).with_workers(1))["j-worker-0"]

    assert not [name for name in own if "STAGE" in name or "HETER" in name]


def test_a_users_own_variable_wins() -> None:
    env = [{"name": "PADDLE_PORT", "value": "1234"}]
    template = {"spec": {"containers": [{"name": "main", "env": env}]}}

    (pod,) = a_scene(a_job().with_workers(1, template)).tick().pods

    written = pod.manifest["spec"]["containers"][0]["env"]
    assert [v for v in written if v["name"] == "PADDLE_PORT"] == env


def test_every_container_names_the_environment_and_the_template_stays_as_it_was() -> None:
    template = {"spec": {"containers": [{"name": "main"}, {"name": "sidecar"}]}}

    (pod,) = a_scene(a_job().with_workers(1, template)).tick().pods

    for container in pod.manifest["spec"]["containers"]:
        assert container["envFrom"] == [{"configMapRef": {"name": "j-env-1-uid-j"}}]
    assert template == {"spec": {"containers": [{"name": "main"}, {"name": "sidecar"}]}}
