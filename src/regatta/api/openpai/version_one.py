"""OpenPAI's v1 config, the JSON one: its fields, its rules, and what it asks for."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import Field

from regatta.api.checks.names import LONGEST, about_label, about_label_value
from regatta.api.checks.schema import Draft, Text
from regatta.api.checks.suggestions import shown
from regatta.api.errors import InvalidConfig
from regatta.api.job import in_variables
from regatta.api.openpai.paddlejob import DEFAULT_CLUSTER, common_marks
from regatta.api.openpai.path_fields import Folders, folders
from regatta.api.openpai.reading import (
    LONGEST_NAME,
    FromOne,
    FromZero,
    Ports,
    check_ports,
    check_size,
    count_or_never,
    news,
    number,
    read,
)
from regatta.api.openpai.retries import FOR_EVER, MOST_RETRIES, run_policy
from regatta.api.openpai.scripts import with_folders
from regatta.api.openpai.templates import as_text
from regatta.api.openpai.wanted import Setting, Wanted, WantedPort, WantedRole, shared_variables
from regatta.api.problems import Problem
from regatta.api.source.limits import capped
from regatta.api.source.paths import join

# Scripts look for these two to the letter.
OBSOLETE = (
    "killAllOnCompletedTaskNumber has been obsoleted, please use minFailedTaskCount and "
    "minSucceededTaskCount instead."
)
TOO_MANY = "minFailedTaskCount or minSucceededTaskCount should not be greater than tasks number."
_JOB_NAME = re.compile(r"[A-Za-z0-9\-._]+", re.ASCII)
_ROLE_NAME = re.compile(r"[A-Za-z0-9._~]+", re.ASCII)
_VARIABLE = re.compile(r"\w+", re.ASCII)
_EXTRA = re.compile(r"[A-Za-z0-9._]+", re.ASCII)
_RETRY_ALWAYS = -2
#: What a container has without a volume for it.
DEFAULT_SHM_MB = 64


class PortDraft(Draft):
    label: Text = None
    begin_at: Annotated[int | None, number(0, 65535)] = None
    port_number: Ports = None


class TaskRoleDraft(Draft):
    name: Text = None
    task_number: FromOne = None
    cpu_number: FromOne = None
    memory_mb: Annotated[int | None, number(100)] = Field(None, alias="memoryMB")
    shm_mb: FromOne = Field(None, alias="shmMB")
    gpu_number: FromZero = None
    port_list: list[PortDraft | None] | None = None
    command: Text = None
    min_failed_task_count: Annotated[int | None, count_or_never(minus_one=False)] = None
    min_succeeded_task_count: Annotated[int | None, count_or_never(minus_one=False)] = None

    @property
    def tasks(self) -> int:
        return 1 if self.task_number is None else self.task_number

    @property
    def memory(self) -> int:
        return 100 if self.memory_mb is None else self.memory_mb


class ConfigDraft(Draft):
    job_name: Text = None
    image: Text = None
    auth_file: Text = None
    data_dir: Text = None
    output_dir: Text = None
    code_dir: Text = None
    virtual_cluster: Text = None
    task_roles: list[TaskRoleDraft | None] | None = None
    gpu_type: Text = None
    retry_count: Annotated[int | None, number(_RETRY_ALWAYS, MOST_RETRIES)] = None
    job_envs: dict[str, Any] | None = None
    extras: dict[str, Any] | None = None
    kill_all_on_completed_task_number: Annotated[int | None, number(-1)] = None

    def roles(self) -> list[tuple[str, TaskRoleDraft]]:
        return [
            (f"taskRoles[{i}]", role)
            for i, role in enumerate(self.task_roles or ())
            if role is not None
        ]


def wanted(config: dict[str, Any], setting: Setting) -> Wanted:
    """Raises InvalidConfig with every problem at once."""
    draft, problems, explained = read(ConfigDraft, config)
    places = folders(
        job=draft.job_name or "",
        data=draft.data_dir or "",
        output=draft.output_dir or "",
        code=draft.code_dir or "",
        setting=setting,
    )
    problems += news((*_check(draft), *places.problems), explained)
    if errors := [problem for problem in problems if problem.severity == "error"]:
        raise InvalidConfig(capped(errors), 1)
    cluster = draft.virtual_cluster or DEFAULT_CLUSTER
    retries = draft.retry_count or 0
    return Wanted(
        protocol=1,
        name=draft.job_name or "",
        user=setting.owner,
        virtual_cluster=cluster,
        roles=tuple(_role(path, role, draft, places) for path, role in draft.roles()),
        variables=_variables(draft, setting, places, cluster),
        variable_marks={
            "PAI_DATA_DIR": "dataDir",
            "PAI_OUTPUT_DIR": "outputDir",
            "PAI_CODE_DIR": "codeDir",
            **{key: join("jobEnvs", key) for key in draft.job_envs or {}},
        },
        run_policy=run_policy(FOR_EVER if retries == _RETRY_ALWAYS else retries, 1),
        gpu_type=draft.gpu_type or "",
        extras=copy.deepcopy(draft.extras or {}),
        own_output=places.own_output,
        config=copy.deepcopy(config),
        warnings=(*problems, *_advice(draft)),
        marks={
            "metadata.name": "jobName",
            "spec.tasks": "taskRoles",
            "spec.runPolicy": "retryCount",
            "spec.schedulingPolicy.queue": "virtualCluster",
        },
    )


# What it may not be


def _check(draft: ConfigDraft) -> Iterator[Problem]:
    yield from _check_name("jobName", draft.job_name, _JOB_NAME, "letters, digits, -, . and _")
    if draft.image is None:
        yield Problem("image", "missing; write the image that every task runs in")
    elif not re.fullmatch(r"\S+", draft.image):
        yield Problem("image", f"found {shown(draft.image)}; an image's name has no spaces in it")
    if draft.gpu_type and about_label_value(draft.gpu_type):
        yield Problem(
            "gpuType",
            f"found {shown(draft.gpu_type)}; it is compared with a label of the nodes, which has "
            f"at most {LONGEST} letters, digits, -, _ and ., such as Tesla-V100",
        )
    cluster = draft.virtual_cluster
    if cluster and (message := about_label(cluster, "a virtual cluster")):
        yield Problem("virtualCluster", message)
    yield from _check_maps(draft)
    yield from _check_roles(draft)


def _check_name(
    path: str, name: str | None, pattern: re.Pattern[str], allowed: str
) -> Iterator[Problem]:
    if name is None:
        yield Problem(path, f"missing; write a name of {allowed}")
    elif not pattern.fullmatch(name):
        yield Problem(path, f"found {shown(name)}; a name here has {allowed}")
    elif len(name) > LONGEST_NAME:
        yield Problem(path, f"found {shown(name)}; a name has at most {LONGEST_NAME} characters")


def _check_maps(draft: ConfigDraft) -> Iterator[Problem]:
    for key, value in (draft.job_envs or {}).items():
        path = join("jobEnvs", key)
        if not _VARIABLE.fullmatch(key):
            yield Problem(path, f"found {shown(key)}; a variable's name has letters, digits and _")
        if isinstance(value, dict | list | None):
            yield Problem(path, f"found {shown(value)}; write text, a number, true or false")
    for key in draft.extras or {}:
        if not _EXTRA.fullmatch(key):
            yield Problem(
                join("extras", key), f"found {shown(key)}; a key here has letters, digits, . and _"
            )


def _check_roles(draft: ConfigDraft) -> Iterator[Problem]:
    if draft.task_roles is None:
        yield Problem("taskRoles", "missing; write a list of task roles, at least one")
        return
    if not draft.task_roles:
        yield Problem("taskRoles", "found an empty list; write at least one task role")
    for i, item in enumerate(draft.task_roles):
        if item is None:
            yield Problem(f"taskRoles[{i}]", "found nothing; write a task role, or remove the item")
    roles = draft.roles()
    yield from check_size(
        "taskRoles", len(draft.task_roles), "taskNumber", (role.tasks for _, role in roles)
    )
    seen: dict[str, str] = {}
    for path, role in roles:
        yield from _check_name(f"{path}.name", role.name, _ROLE_NAME, "letters, digits, ., _ and ~")
        if role.name in seen:
            yield Problem(
                f"{path}.name", f"{shown(role.name)} is the name of {seen[role.name]} already"
            )
        if role.name is not None:
            seen.setdefault(role.name, path)
        yield from _check_role(path, role)


def _check_role(path: str, role: TaskRoleDraft) -> Iterator[Problem]:
    if role.command is None:
        yield Problem(f"{path}.command", "missing; write the command that a task runs")
    elif not role.command.strip():
        yield Problem(f"{path}.command", f"found {shown(role.command)}; write what a task runs")
    if role.shm_mb is not None and role.shm_mb > role.memory:
        yield Problem(
            f"{path}.shmMB",
            f"found {role.shm_mb}, above memoryMB, which is {role.memory}; shared memory is a part "
            "of it",
        )
    for field, count in (
        ("minFailedTaskCount", role.min_failed_task_count),
        ("minSucceededTaskCount", role.min_succeeded_task_count),
    ):
        if count is not None and count > role.tasks:
            yield Problem(
                f"{path}.{field}",
                f"{TOO_MANY} Found {count}, and taskNumber is {role.tasks}; write {role.tasks} at "
                "most, or ask for more tasks",
            )
    yield from _check_port_list(f"{path}.portList", role)


def _check_port_list(path: str, role: TaskRoleDraft) -> Iterator[Problem]:
    counts: dict[str, int] = {}
    for i, port in enumerate(role.port_list or ()):
        place = f"{path}[{i}]"
        if port is None:
            yield Problem(place, "found nothing; write a label and a portNumber")
            continue
        count, begin = port.port_number or 1, port.begin_at or 0
        if port.label is None:
            yield Problem(f"{place}.label", "missing; name the port, such as http")
        elif not _ROLE_NAME.fullmatch(port.label):
            yield Problem(
                f"{place}.label",
                f"found {shown(port.label)}; a label has letters, digits, ., _ and ~",
            )
        elif port.label in counts:
            yield Problem(f"{place}.label", f"{shown(port.label)} stands in this list twice")
        if port.label is not None:
            counts[port.label] = counts.get(port.label, 0) + count
        if begin + count - 1 > 65535:
            yield Problem(
                f"{place}.beginAt",
                f"found {begin}, and {count} ports from there go beyond 65535, the last there is",
            )
    yield from check_ports(path, counts)


# What it asks for


def _role(path: str, role: TaskRoleDraft, draft: ConfigDraft, places: Folders) -> WantedRole:
    completion: dict[str, int | None] = {}
    if "min_failed_task_count" in role.model_fields_set:
        completion["minFailed"] = role.min_failed_task_count
    if role.min_succeeded_task_count is not None:
        completion["minSucceeded"] = role.min_succeeded_task_count
    ports = tuple(
        WantedPort(label=port.label or "", count=port.port_number or 1, begin_at=port.begin_at or 0)
        for port in role.port_list or ()
        if port is not None
    )
    return WantedRole(
        name=role.name or "",
        replicas=role.tasks,
        image=draft.image or "",
        cpus=1 if role.cpu_number is None else role.cpu_number,
        memory_mb=role.memory,
        gpus=role.gpu_number or 0,
        words=tuple(_started(role.command or "", places)),
        shm_mb=role.shm_mb,
        told_shm_mb=DEFAULT_SHM_MB if role.shm_mb is None else None,
        ports=ports,
        completion=completion,
        marks=_marks(path, len(ports)),
    )


def _started(command: str, places: Folders) -> list[str]:
    return with_folders(command, places.code_path, places.output_path, places.own_output)


def _marks(path: str, ports: int) -> dict[str, str]:
    return {
        "": path,
        "replicas": f"{path}.taskNumber",
        "name": f"{path}.name",
        "alias": f"{path}.name",
        "completion.minFailed": f"{path}.minFailedTaskCount",
        "completion.minSucceeded": f"{path}.minSucceededTaskCount",
        "ports": f"{path}.portList",
        **{f"ports[{i}].count": f"{path}.portList[{i}].portNumber" for i in range(ports)},
        **{f"ports[{i}]": f"{path}.portList[{i}]" for i in range(ports)},
        "template.spec.nodeSelector": "gpuType",
        **common_marks(
            image="image",
            cpus=f"{path}.cpuNumber",
            memory=f"{path}.memoryMB",
            gpus=f"{path}.gpuNumber",
            words=f"{path}.command",
            shm=f"{path}.shmMB",
        ),
    }


def _variables(
    draft: ConfigDraft, setting: Setting, places: Folders, cluster: str
) -> dict[str, str]:
    """The author's own, after ours: where both name one, theirs counts."""
    return {
        **shared_variables(setting.owner, draft.job_name or "", cluster, setting.default_fs_uri),
        "PAI_DATA_DIR": places.data,
        "PAI_OUTPUT_DIR": places.output,
        "PAI_CODE_DIR": places.code,
        **{key: as_text(value) for key, value in (draft.job_envs or {}).items()},
    }


# What it may be, and its author should know


def _advice(draft: ConfigDraft) -> Iterator[Problem]:
    def warning(path: str, message: str) -> Problem:
        return Problem(path, message, "warning")

    if draft.kill_all_on_completed_task_number is not None:
        yield warning("killAllOnCompletedTaskNumber", OBSOLETE)
    if draft.auth_file:
        yield warning(
            "authFile",
            "it is not read: images are pulled as the place where the job runs pulls them. A v2 "
            "config can name a registry's user, in the auth of its dockerimage",
        )
    if draft.retry_count == _RETRY_ALWAYS:
        yield warning(
            "retryCount",
            "found -2: the job starts again after every failure, as with -1, but not after a "
            "success",
        )
    yield from _about_labels(draft)
    envs = draft.job_envs or {}
    if envs.get("isDebug"):
        yield warning(
            "jobEnvs.isDebug",
            "a task that failed is not kept for debugging; its log stays, and its resources are "
            "given back",
        )
    if envs.get("paiAzRDMA"):
        yield warning("jobEnvs.paiAzRDMA", "no RDMA device is given to the tasks")


def _about_labels(draft: ConfigDraft) -> Iterator[Problem]:
    """Names of roles that come to the same are refused with every job of tasks; ports are not."""
    for path, role in draft.roles():
        first: dict[str, int] = {}
        for i, port in enumerate(role.port_list or ()):
            if port is None or port.label is None:
                continue
            j = first.setdefault(in_variables(port.label), i)
            if j != i:
                yield Problem(
                    f"{path}.portList[{i}].label",
                    f"found {shown(port.label)}, which in a variable's name is what that of "
                    f"portList[{j}] is, {in_variables(port.label)}: tasks read the ports of one of "
                    "them there; call it otherwise",
                    "warning",
                )
