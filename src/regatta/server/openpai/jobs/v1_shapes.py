"""What clients of OpenPAI's first API read of a job, and how it comes from what v2's are shown.

Its states have no word for stopping, its ends other numbers, its GPUs are bits of a number. Pure.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import asdict

from regatta.server.openpai.jobs.exit_specs import (
    IN_VERSION_ONE,
    in_version_one,
    task_code_in_version_one,
)
from regatta.server.openpai.jobs.job_answers import retry_details
from regatta.server.openpai.jobs.job_shapes import (
    ExitMessages,
    ExitSpec,
    OpenPaiDetail,
    OpenPaiTask,
    RetryDetails,
    TaskRoleName,
)
from regatta.server.openpai_states import FINAL_STATES, State
from regatta.server.records.job_rows import JobRow

WAITS, RUNS, ENDED = "APPLICATION_WAITING", "APPLICATION_RUNNING", "FRAMEWORK_COMPLETED"


class _Shape(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    pass


class OldSummary(_Shape, frozen=True):
    name: str
    username: str
    namespace: str
    legacy: bool
    state: State
    sub_state: str
    execution_type: str
    retries: int
    retry_details: RetryDetails
    created_time: int
    completed_time: int | None
    app_exit_code: int | None
    virtual_cluster: str
    total_gpu_number: int
    total_task_number: int
    total_task_role_number: int


class OldJobStatus(_Shape, frozen=True):
    username: str
    state: State
    sub_state: str
    execution_type: str
    retries: int
    retry_details: RetryDetails
    created_time: int
    completed_time: int | None
    app_id: str
    app_progress: float
    app_tracking_url: str
    app_launched_time: int | None
    app_completed_time: int | None
    app_exit_code: int | None
    app_exit_spec: ExitSpec | None
    app_exit_diagnostics: str | None
    app_exit_messages: ExitMessages | None
    app_exit_trigger_message: str | None
    app_exit_trigger_task_role_name: str | None
    app_exit_trigger_task_index: int | None
    app_exit_type: str | None
    virtual_cluster: str
    #: Ours: why it does not run yet.
    waiting_reason: str | None


class OldTask(_Shape, frozen=True):
    task_index: int
    task_state: State
    container_id: str | None
    container_ip: str | None
    container_ports: dict[str, str]
    #: Bit n: GPU n.
    container_gpus: int
    container_log: str
    container_exit_code: int | None


class OldRole(_Shape, frozen=True):
    task_role_status: TaskRoleName
    task_statuses: tuple[OldTask, ...]


class OldDetail(_Shape, frozen=True):
    name: str
    job_status: OldJobStatus
    task_roles: dict[str, OldRole]


OLD_SHAPES = (OldSummary, OldDetail)


def old_state(state: State, *, launched: bool) -> State:
    if state is not State.STOPPING:
        return state
    return State.RUNNING if launched else State.WAITING


def old_summary(row: JobRow) -> OldSummary:
    state = _state(row)
    return OldSummary(
        name=row.name,
        username=row.username,
        namespace=row.username,
        legacy=False,
        state=state,
        sub_state=_sub_state(state),
        execution_type=row.execution_type,
        retries=row.retries,
        retry_details=retry_details(row),
        created_time=row.submitted_at,
        completed_time=row.completed_at,
        app_exit_code=_code(row.exit_code),
        virtual_cluster=row.virtual_cluster,
        total_gpu_number=row.total_gpus,
        total_task_number=row.total_tasks,
        total_task_role_number=row.total_roles,
    )


def old_detail(row: JobRow, shown: OpenPaiDetail) -> OldDetail:
    state, status = _state(row), asdict(shown.job_status)
    fields: dict[str, Any] = {
        name: status[name] for name in OldJobStatus.__struct_fields__ if name in status
    }
    fields |= {
        "state": state,
        "sub_state": _sub_state(state),
        "created_time": row.submitted_at,
        "app_exit_code": _code(shown.job_status.app_exit_code),
        "app_exit_spec": in_version_one(shown.job_status.app_exit_spec),
    }
    roles = {
        name: OldRole(
            task_role_status=role.task_role_status,
            task_statuses=tuple(map(_task, role.task_statuses)),
        )
        for name, role in shown.task_roles.items()
    }
    return OldDetail(name=row.name, job_status=OldJobStatus(**fields), task_roles=roles)


def _task(task: OpenPaiTask) -> OldTask:
    return OldTask(
        task_index=task.task_index,
        task_state=old_state(task.task_state, launched=task.launched_time is not None),
        container_id=task.container_id,
        container_ip=task.container_ip,
        container_ports=task.container_ports,
        container_gpus=_bits(task.container_gpus),
        container_log=task.container_log,
        container_exit_code=task_code_in_version_one(task.container_exit_code),
    )


def _state(row: JobRow) -> State:
    return old_state(State(row.state), launched=row.launched_at is not None)


def _sub_state(state: State) -> str:
    if state in FINAL_STATES:
        return ENDED
    return RUNS if state is State.RUNNING else WAITS


def _code(code: int | None) -> int | None:
    return None if code is None else IN_VERSION_ONE.get(code, code)


def _bits(gpus: str | None) -> int:
    """Of those that are numbers: a cluster names them otherwise."""
    numbers = [int(gpu) for gpu in (gpus or "").split(",") if gpu.isascii() and gpu.isdigit()]
    return sum(1 << number for number in set(numbers) if number < 63)
