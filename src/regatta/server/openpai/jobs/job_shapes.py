"""What OpenPAI's clients read of a job. Names of fields, their types and which may be null are of
its contract; what we add is at the end of a structure and says so."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from regatta.server.openpai_states import State, SubState


class _Shape(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """camelCase; every field is there, null where nothing is known."""


class RetryDetails(_Shape, frozen=True):
    user: int
    platform: int
    resource: int


class ExitSpec(_Shape, frozen=True):
    """What an exit code means, and what can be done."""

    code: int
    phrase: str
    issuer: str
    causer: str
    type: str
    stage: str
    behavior: str
    reaction: str
    reason: str
    repro: tuple[str, ...] = ()
    solution: tuple[str, ...] = ()


class ExitMessages(_Shape, frozen=True):
    container: str | None = None
    runtime: None = None
    launcher: str | None = None


class OpenPaiSummary(_Shape, frozen=True):
    """A job in v2's lists."""

    name: str
    username: str
    state: State
    sub_state: SubState
    execution_type: str
    tags: tuple[str, ...]
    retries: int
    retry_details: RetryDetails
    retry_delay_time: int | None
    submission_time: int
    created_time: int | None
    launched_time: int | None
    completed_time: int | None
    app_exit_code: int | None
    virtual_cluster: str
    job_priority: str
    total_gpu_number: int
    total_task_number: int
    total_task_role_number: int
    debug_id: str
    #: Ours: why it does not run yet.
    waiting_reason: str | None


class SummariesWithCount(_Shape, frozen=True):
    total_count: int
    data: tuple[OpenPaiSummary, ...]


class OpenPaiJobStatus(_Shape, frozen=True):
    username: str
    state: State
    sub_state: SubState
    execution_type: str
    retries: int
    retry_details: RetryDetails
    retry_delay_time: int | None
    submission_time: int
    created_time: int | None
    launched_time: int | None
    completed_time: int | None
    attempt_id: int
    attempt_state: State
    app_id: str
    app_progress: float
    app_tracking_url: str
    app_created_time: int | None
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
    #: Ours: why it does not run yet; what is not known of it because nobody looked.
    waiting_reason: str | None
    notes: str | None


class TaskAttempt(_Shape, frozen=True, kw_only=True):
    """One life of a task."""

    attempt_id: int
    attempt_state: State
    current_attempt_created_time: int | None = None
    current_attempt_launched_time: int | None = None
    current_attempt_completed_time: int | None = None
    container_id: str | None = None
    container_ip: str | None = None
    container_node_name: str | None = None
    #: By label, several with commas.
    container_ports: dict[str, str] = {}
    container_gpus: str | None = None
    container_log: str
    container_exit_code: int | None = None
    container_exit_spec: ExitSpec | None = None
    container_exit_diagnostics: str | None = None
    hived: None = None


class OpenPaiTask(TaskAttempt, frozen=True, kw_only=True):
    """A task, with the last of its lives."""

    task_index: int
    task_state: State
    retries: int = 0
    accountable_retries: int = 0
    created_time: int | None = None
    launched_time: int | None = None
    completed_time: int | None = None


class TaskRoleName(_Shape, frozen=True):
    name: str


class OpenPaiRole(_Shape, frozen=True):
    task_role_status: TaskRoleName
    task_statuses: tuple[OpenPaiTask, ...]


class OpenPaiDetail(_Shape, frozen=True):
    """A job by itself, in v2."""

    name: str
    tags: tuple[str, ...]
    job_status: OpenPaiJobStatus
    task_roles: dict[str, OpenPaiRole]
    job_priority: str
    debug_id: str


class TaskHistory(_Shape, frozen=True):
    task_index: int
    task_uid: str
    task_state: State
    retries: int
    accountable_retries: int
    created_time: int | None
    launched_time: int | None
    completed_time: int | None
    username: str
    job_name: str
    job_attempt_id: int
    task_role_name: str
    attempts: tuple[TaskAttempt, ...]


class ExitDiagnostics(_Shape, frozen=True):
    diagnostics_summary: str
    runtime: None
    launcher: str


class OpenPaiJobAttempt(_Shape, frozen=True):
    """An attempt in the older API of a job's history."""

    job_name: str
    framework_name: str
    uid: str
    user_name: str
    state: State
    origin_state: str | None
    attempt_index: int
    job_started_time: int | None
    attempt_started_time: int | None
    attempt_completed_time: int | None
    exit_code: int | None
    exit_phrase: str | None
    exit_type: str | None
    exit_diagnostics: ExitDiagnostics | None
    app_exit_trigger_message: str | None
    app_exit_trigger_task_role_name: str | None
    app_exit_trigger_task_index: int | None
    app_exit_spec: ExitSpec | None
    app_exit_diagnostics: str | None
    app_exit_messages: ExitMessages | None
    total_gpu_number: int
    total_task_number: int
    total_task_role_number: int
    task_roles: dict[str, OpenPaiRole]
    is_latest: bool


class OpenPaiEvent(_Shape, frozen=True):
    uid: str
    framework_name: str
    pod_uid: str
    taskrole_name: str
    task_name: str
    #: -1: it is about the whole job.
    task_index: int
    type: str
    reason: str
    message: str
    first_timestamp: str
    last_timestamp: str
    count: int
    source_component: str
    source_host: str | None


class EventsWithCount(_Shape, frozen=True):
    total_count: int
    data: tuple[OpenPaiEvent, ...]


class LogLocation(_Shape, frozen=True):
    name: str
    uri: str


class LogLocations(_Shape, frozen=True):
    locations: tuple[LogLocation, ...]


class Said(_Shape, frozen=True):
    """That something was done."""

    status: int
    message: str


class SaidOnly(_Shape, frozen=True):
    message: str


class Wish(_Shape, frozen=True):
    """The body of what changes a job."""

    value: str


class ExecutionWish(Wish, frozen=True):
    value: Annotated[str, msgspec.Meta(extra_json_schema={"enum": ["START", "STOP"]})]


class TagWish(Wish, frozen=True):
    value: Annotated[str, msgspec.Meta(extra_json_schema={"pattern": "^[^,]{1,256}$"})]


#: A config as JSON.
Config = dict[str, Any]

SHAPES = (
    *(OpenPaiSummary, SummariesWithCount, OpenPaiDetail, TaskHistory, OpenPaiJobAttempt),
    *(EventsWithCount, LogLocations, Said, SaidOnly, ExecutionWish, TagWish),
)
