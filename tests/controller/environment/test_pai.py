"""What a task of an OpenPAI-style job reads."""

from __future__ import annotations

from regatta.api.job import Completion, TaskPort
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
