"""What a task of an OpenPAI-style job reads."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from regatta.api.job import Completion, RoleSpec, TaskPort
from regatta.controller.environment import Place, pai
from tests.controller.builders import a_job
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


JOB = a_job().with_task("t", 1).obj()

SHM = {
    "spec": {
        "containers": [
            {
                "name": "main",
                "resources": {
                    "limits": {"cpu": "1500m", "memory": "2Gi", "nvidia.com/gpu": 1},
                },
                "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}],
            }
        ],
        "volumes": [
            {"name": "scratch", "emptyDir": {"sizeLimit": "9Gi"}},
            {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "64Mi"}},
        ],
    }
}


def test_a_task_reads_all_that_openpai_promises() -> None:
    chief = Completion(min_failed=2, min_succeeded=1)
    node = {"completion": Completion(min_failed=None), "alias": "Data_Node", "template": SHM}
    builder = a_job("train").with_task("chief", 1, chief).with_task("data-node", 2, **node)

    own = environments(builder)["train-data-node-1"]

    assert own == {
        # The whole job.
        "PAI_JOB_NAME": "train",
        "PAI_FRAMEWORK_NAME": "train",
        "FRAMEWORK_NAME": "train",
        "APP_ID": "uid-train",
        "PAI_TASK_ROLE_COUNT": "2",
        "PAI_JOB_TASK_ROLE_COUNT": "2",
        "PAI_TASK_ROLES_NUM": "2",
        "PAI_TASK_ROLE_LIST": "chief,Data_Node",
        "PAI_JOB_TASK_ROLE_LIST": "chief,Data_Node",
        "PAI_JOB_TASK_COUNT": "3",
        "PAI_TASKS_NUM": "3",
        "PAI_TASK_ROLE_INSTANCES": "chief:0,Data_Node:0,Data_Node:1",
        # Each role.
        "PAI_TASK_ROLE_TASK_COUNT_chief": "1",
        "PAI_TASK_ROLE_chief_HOST_LIST": "127.64.0.1:20000",
        "PAI_RESOURCE_chief": "0,0,0,0",
        "PAI_MIN_FAILED_TASK_COUNT_chief": "2",
        "PAI_MIN_SUCCEEDED_TASK_COUNT_chief": "1",
        "PAI_TASK_ROLE_TASK_COUNT_Data_Node": "2",
        "PAI_TASK_ROLE_Data_Node_HOST_LIST": "127.64.0.2:20020,127.64.0.3:20040",
        "PAI_RESOURCE_Data_Node": "1,2,2048,64",
        "PAI_MIN_FAILED_TASK_COUNT_Data_Node": "-1",
        "PAI_MIN_SUCCEEDED_TASK_COUNT_Data_Node": "2",
        # Each task.
        "PAI_HOST_IP_chief_0": "127.64.0.1",
        "PAI_PORT_LIST_chief_0_http": "20000",
        "PAI_PORT_LIST_chief_0_ssh": "20001",
        "PAI_chief_0_http_PORT": "20000",
        "PAI_chief_0_ssh_PORT": "20001",
        "PAI_HOST_IP_Data_Node_0": "127.64.0.2",
        "PAI_PORT_LIST_Data_Node_0_http": "20020",
        "PAI_PORT_LIST_Data_Node_0_ssh": "20021",
        "PAI_Data_Node_0_http_PORT": "20020",
        "PAI_Data_Node_0_ssh_PORT": "20021",
        "PAI_HOST_IP_Data_Node_1": "127.64.0.3",
        "PAI_PORT_LIST_Data_Node_1_http": "20040",
        "PAI_PORT_LIST_Data_Node_1_ssh": "20041",
        "PAI_Data_Node_1_http_PORT": "20040",
        "PAI_Data_Node_1_ssh_PORT": "20041",
        # This one.
        "POD_IP": "127.64.0.3",
        "PAI_CURRENT_CONTAINER_IP": "127.64.0.3",
        "PAI_CONTAINER_HOST_IP": "127.64.0.3",
        "PAI_CONTAINER_ID": "pod-3",
        "PAI_CURRENT_TASK_ROLE_NAME": "Data_Node",
        "PAI_TASK_ROLE_NAME": "Data_Node",
        "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX": "1",
        "PAI_TASK_INDEX": "1",
        "PAI_TASK_ROLE_INDEX": "1",
        "PAI_CURRENT_TASK_ROLE_TASK_COUNT": "2",
        "PAI_TASK_ROLE_NUM": "2",
        "PAI_CURRENT_TASK_ROLE_CPU_COUNT": "2",
        "PAI_TASK_CPU_NUM": "2",
        "PAI_CURRENT_TASK_ROLE_MEM_MB": "2048",
        "PAI_TASK_MEM_MB": "2048",
        "PAI_CURRENT_TASK_ROLE_GPU_COUNT": "1",
        "PAI_TASK_GPU_NUM": "1",
        "PAI_CURRENT_TASK_ROLE_SHM_MB": "64",
        "PAI_RESOURCE": "1,2,2048,64",
        "PAI_CURRENT_TASK_ROLE_MIN_FAILED_TASK_COUNT": "-1",
        "PAI_CURRENT_TASK_ROLE_MIN_SUCCEEDED_TASK_COUNT": "2",
        "PAI_CONTAINER_HOST_PORT_LIST": "http:20040;ssh:20041;",
        "PAI_CONTAINER_HOST_http_PORT_LIST": "20040",
        "PAI_CONTAINER_HOST_ssh_PORT_LIST": "20041",
        "PAI_CURRENT_CONTAINER_PORT": "20040",
        "PAI_CONTAINER_HOST_PORT": "20040",
        "PAI_CONTAINER_SSH_PORT": "20041",
    }


def test_a_port_with_a_place_of_its_own_has_it_on_every_replica() -> None:
    ports = (TaskPort(label="http", begin_at=8080, count=2), TaskPort(label="rpc"))

    seen = environments(a_job().with_task("t", 2, ports=ports))

    for pod in ("j-t-0", "j-t-1"):
        assert seen[pod]["PAI_CONTAINER_HOST_http_PORT_LIST"] == "8080,8081"
        assert seen[pod]["PAI_TASK_ROLE_t_HOST_LIST"] == "127.64.0.1:8080,127.64.0.2:8080"
    assert seen["j-t-1"]["PAI_PORT_LIST_t_1_rpc"] == "20020"


def test_ports_that_are_dealt_out_pass_over_those_that_are_taken() -> None:
    ports = (TaskPort(label="rpc", count=2), TaskPort(label="http", begin_at=20001))

    own = environments(a_job().with_task("t", 1, ports=ports))["j-t-0"]

    assert own["PAI_CONTAINER_HOST_PORT_LIST"] == "rpc:20000,20002;http:20001;ssh:20003;"


UNREADABLE: dict[str, dict[str, Any]] = {
    "no amount": {"containers": [{"name": "m", "resources": {"limits": {"cpu": "much"}}}]},
    "no size": {
        "containers": [
            {"name": "m", "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}]},
        ],
        "volumes": [{"name": "shm", "emptyDir": {"sizeLimit": "large"}}],
    },
    "a size of its machine's choice": {
        "containers": [
            {"name": "m", "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}]},
        ],
        "volumes": [{"name": "shm", "emptyDir": {}}],
    },
    "a volume elsewhere": {
        "containers": [{"name": "m", "volumeMounts": [{"name": "shm", "mountPath": "/data"}]}],
        "volumes": [{"name": "shm", "emptyDir": {"sizeLimit": "1Gi"}}],
    },
    "a volume of another kind": {
        "containers": [
            {"name": "m", "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}]},
        ],
        "volumes": [{"name": "shm", "hostPath": {"path": "/x"}}],
    },
    "the memory of another container": {
        "containers": [
            {"name": "m"},
            {"name": "n", "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}]},
        ],
        "volumes": [{"name": "shm", "emptyDir": {"sizeLimit": "1Gi"}}],
    },
    "nothing": {},
}


@pytest.mark.parametrize("pod", UNREADABLE.values(), ids=UNREADABLE)
def test_what_cannot_be_read_of_a_template_counts_as_nothing(pod: dict[str, Any]) -> None:
    place = Place(
        role="t", index=0, port=1, spec=RoleSpec(name="t", replicas=1, template={"spec": pod})
    )

    own = {variable["name"]: variable.get("value") for variable in pai.own(JOB, place)}

    assert own["PAI_RESOURCE"] == "0,0,0,0"


@pytest.mark.parametrize(("said", "told"), [("128", "128"), ("0", "0"), ("much", "64"), ("", "64")])
def test_a_container_that_names_its_shared_memory_itself_is_believed(said: str, told: str) -> None:
    template = copy.deepcopy(SHM)
    template["spec"]["containers"][0]["env"] = [
        {"name": "PAI_CURRENT_TASK_ROLE_SHM_MB", "value": said}
    ]

    seen = environments(a_job().with_task("t", 1, template=template))["j-t-0"]

    assert seen["PAI_CURRENT_TASK_ROLE_SHM_MB"] == said
    assert seen["PAI_RESOURCE"].rpartition(",")[2] == told
    assert seen["PAI_RESOURCE_t"] == seen["PAI_RESOURCE"]


@pytest.mark.parametrize(("room", "told"), [(1, True), (0, False)])
def test_the_list_of_all_is_left_out_where_no_variable_could_hold_it(
    room: int, told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pai, "MAX_STRING", len("PAI_TASK_ROLE_INSTANCES=T:0,T:1") + room)
    spec = RoleSpec(name="t", replicas=2, template={}, alias="T")
    places = [Place(role="t", index=n, spec=spec, port=20000, host="h") for n in range(2)]

    assert ("PAI_TASK_ROLE_INSTANCES" in pai.shared(JOB, {"t": places})) is told


def test_so_many_as_must_succeed_are_told() -> None:
    builder = a_job().with_task("few", 3, Completion(min_succeeded=2)).with_task("all", 3)

    seen = environments(builder)

    assert seen["j-all-0"]["PAI_MIN_SUCCEEDED_TASK_COUNT_few"] == "2"
    assert seen["j-few-0"]["PAI_CURRENT_TASK_ROLE_MIN_SUCCEEDED_TASK_COUNT"] == "2"
    assert seen["j-few-0"]["PAI_MIN_SUCCEEDED_TASK_COUNT_all"] == "3"
    assert seen["j-all-0"]["PAI_CURRENT_TASK_ROLE_MIN_SUCCEEDED_TASK_COUNT"] == "3"
