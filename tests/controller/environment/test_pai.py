"""What a task of an OpenPAI-style job reads."""

from __future__ import annotations

from regatta.api.job import Completion, TaskPort
from tests.controller.builders import a_job, a_scene
from tests.controller.environment.seeing import environments


def test_tasks_get_openpais_variables_instead() -> None:
    http = TaskPort(label="http", count=2)
    builder = a_job().with_task("ps-server", 2, Completion(min_failed=1), ports=(http,))

    own = environments(builder.with_task("worker", 1))["j-worker-0"]

    assert own["PAI_TASK_ROLE_LIST"] == "ps-server,worker"
    assert own["PAI_TASK_ROLE_TASK_COUNT_ps_server"] == "2"
    assert own["PAI_TASK_ROLE_ps_server_HOST_LIST"] == "127.64.0.1:20000,127.64.0.2:20020"
    assert own["PAI_PORT_LIST_ps_server_1_http"] == "20020,20021"
    assert own["PAI_PORT_LIST_ps_server_1_ssh"] == "20022"
    assert own["PAI_CURRENT_TASK_ROLE_NAME"] == "worker"
    assert own["PAI_MIN_FAILED_TASK_COUNT_ps_server"] == "1"
    assert not [name for name in own if name.startswith("PADDLE_")]


def test_declared_ports_come_before_those_that_every_task_has() -> None:
    ports = (TaskPort(label="rpc", count=3), TaskPort(label="ssh"))

    own = environments(a_job().with_task("chief", 1, ports=ports))["j-chief-0"]

    assert own["PAI_CONTAINER_HOST_PORT_LIST"] == "rpc:20000,20001,20002;ssh:20003;http:20004;"
    assert (own["PAI_CONTAINER_SSH_PORT"], own["PAI_CONTAINER_HOST_PORT"]) == ("20003", "20004")


def test_a_task_reads_all_that_openpai_promises() -> None:
    chief = Completion(min_failed=2, min_succeeded=1)
    builder = a_job("train").with_task("chief", 1, chief).with_task("data-node", 2, Completion())

    own = environments(builder)["train-data-node-1"]

    assert own == {
        "PAI_JOB_NAME": "train",
        "PAI_TASK_ROLE_COUNT": "2",
        "PAI_TASK_ROLE_LIST": "chief,data-node",
        "PAI_JOB_TASK_COUNT": "3",
        "PAI_TASK_ROLE_TASK_COUNT_chief": "1",
        "PAI_TASK_ROLE_TASK_COUNT_data_node": "2",
        "PAI_TASK_ROLE_chief_HOST_LIST": "127.64.0.1:20000",
        "PAI_TASK_ROLE_data_node_HOST_LIST": "127.64.0.2:20020,127.64.0.3:20040",
        "PAI_MIN_FAILED_TASK_COUNT_chief": "2",
        "PAI_MIN_SUCCEEDED_TASK_COUNT_chief": "1",
        "PAI_HOST_IP_chief_0": "127.64.0.1",
        "PAI_PORT_LIST_chief_0_http": "20000",
        "PAI_PORT_LIST_chief_0_ssh": "20001",
        "PAI_chief_0_http_PORT": "20000",
        "PAI_chief_0_ssh_PORT": "20001",
        "PAI_HOST_IP_data_node_0": "127.64.0.2",
        "PAI_PORT_LIST_data_node_0_http": "20020",
        "PAI_PORT_LIST_data_node_0_ssh": "20021",
        "PAI_data_node_0_http_PORT": "20020",
        "PAI_data_node_0_ssh_PORT": "20021",
        "PAI_HOST_IP_data_node_1": "127.64.0.3",
        "PAI_PORT_LIST_data_node_1_http": "20040",
        "PAI_PORT_LIST_data_node_1_ssh": "20041",
        "PAI_data_node_1_http_PORT": "20040",
        "PAI_data_node_1_ssh_PORT": "20041",
        "POD_IP": "127.64.0.3",
        "PAI_CURRENT_TASK_ROLE_NAME": "data-node",
        "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX": "1",
        "PAI_CURRENT_TASK_ROLE_TASK_COUNT": "2",
        "PAI_CURRENT_TASK_ROLE_GPU_COUNT": "0",
        "PAI_TASK_INDEX": "1",
        "PAI_TASK_ROLE_NAME": "data-node",
        "PAI_CURRENT_CONTAINER_IP": "127.64.0.3",
        "PAI_CONTAINER_HOST_IP": "127.64.0.3",
        "PAI_CONTAINER_HOST_PORT_LIST": "http:20040;ssh:20041;",
        "PAI_CURRENT_CONTAINER_PORT": "20040",
        "PAI_CONTAINER_HOST_PORT": "20040",
        "PAI_CONTAINER_SSH_PORT": "20041",
    }


def test_a_task_learns_its_address_from_the_cluster() -> None:
    (pod,) = a_scene(a_job().with_task("t", 1), services=True).tick().pods

    env = {v["name"]: v for v in pod.manifest["spec"]["containers"][0]["env"]}
    for name in ("POD_IP", "PAI_CURRENT_CONTAINER_IP", "PAI_CONTAINER_HOST_IP"):
        assert env[name]["valueFrom"] == {"fieldRef": {"fieldPath": "status.podIP"}}
