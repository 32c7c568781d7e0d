"""What a config asks for, written as a PaddleJob: the document, and where its fields come from."""

from __future__ import annotations

from typing import Any

from regatta.api.job import (
    API_VERSION,
    GROUP,
    KIND,
    SHARED_MEMORY_VARIABLE,
    CleanPodPolicy,
    Mode,
)
from regatta.api.openpai.dns_names import job_label, role_labels, room_for_job
from regatta.api.openpai.scripts import literal
from regatta.api.openpai.wanted import Wanted, WantedPort, WantedRole
from regatta.api.quantity import GPU
from regatta.api.source.paths import join

JOB_ANNOTATION = f"{GROUP}/openpai-job"
USER_ANNOTATION = f"{GROUP}/openpai-user"
CLUSTER_ANNOTATION = f"{GROUP}/virtual-cluster"
DEFAULT_CLUSTER = "default"
GPU_PRODUCT = "nvidia.com/gpu.product"


def labels_of(wanted: Wanted) -> tuple[str, dict[str, str]]:
    """The job's name as a host name, and each role's."""
    roles = role_labels(role.name for role in wanted.roles)
    room = room_for_job((roles[role.name], role.replicas) for role in wanted.roles)
    return job_label(wanted.name, room), roles


def document_of(wanted: Wanted) -> dict[str, Any]:
    name, labels = labels_of(wanted)
    spec: dict[str, Any] = {
        "mode": Mode.CUSTOM.value,
        # As in OpenPAI, what tasks printed can be read when the job is over.
        "cleanPodPolicy": CleanPodPolicy.NEVER.value,
    }
    if wanted.intranet:
        spec["intranet"] = wanted.intranet
    spec["tasks"] = [_task(wanted, role, name, labels[role.name]) for role in wanted.roles]
    if wanted.virtual_cluster != DEFAULT_CLUSTER:
        spec["schedulingPolicy"] = {"queue": wanted.virtual_cluster}
    if wanted.run_policy:
        spec["runPolicy"] = wanted.run_policy
    annotations = {
        JOB_ANNOTATION: wanted.name,
        USER_ANNOTATION: wanted.user,
        CLUSTER_ANNOTATION: wanted.virtual_cluster,
    }
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": name, "annotations": annotations},
        "spec": spec,
    }


def marks_of(wanted: Wanted) -> dict[str, str]:
    """Our path → the author's. The longest that holds a place is the one that counts."""
    marks = dict(wanted.marks)
    for i, role in enumerate(wanted.roles):
        place = f"spec.tasks[{i}]"
        for j, variable in enumerate(wanted.variables):
            if theirs := wanted.variable_marks.get(variable):
                marks[f"{place}.template.spec.containers[0].env[{j}]"] = theirs
        for ours, theirs in role.marks.items():
            marks[place if not ours else f"{place}.{ours}"] = theirs
    return marks


def _task(wanted: Wanted, role: WantedRole, job: str, label: str) -> dict[str, Any]:
    task: dict[str, Any] = {"name": label}
    if label != role.name:
        task["alias"] = role.name
    task["replicas"] = role.replicas
    if role.completion:
        task["completion"] = role.completion
    if role.ports:
        task["ports"] = [_port(port) for port in role.ports]
    task["template"] = {"spec": _pod(wanted, role, job)}
    return task


def _port(port: WantedPort) -> dict[str, Any]:
    written: dict[str, Any] = {"label": port.label, "count": port.count}
    return {**written, "beginAt": port.begin_at} if port.begin_at > 0 else written


def _pod(wanted: Wanted, role: WantedRole, job: str) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": role.image,
        "command": [literal(word) for word in role.words],
        "env": _env(wanted, role, job),
        "resources": {"requests": _resources(role), "limits": _resources(role)},
    }
    if role.secret_variables:
        # Else a cluster writes the end of the log, and what it says of them, into the pod.
        container["terminationMessagePolicy"] = "File"
    pod: dict[str, Any] = {"containers": [container]}
    if role.shm_mb is not None:
        container["volumeMounts"] = [{"name": "shm", "mountPath": "/dev/shm"}]
        memory = {"medium": "Memory", "sizeLimit": f"{role.shm_mb}Mi"}
        pod["volumes"] = [{"name": "shm", "emptyDir": memory}]
    if wanted.gpu_type:
        pod["nodeSelector"] = {GPU_PRODUCT: wanted.gpu_type}
    if role.pulls_with_secret:
        pod["imagePullSecrets"] = [{"name": registry_secret(job)}]
    return pod


def secret_name(job: str) -> str:
    """The Secret that holds what the commands of this job (by its host name) refer to."""
    return f"{job}-secrets"


def registry_secret(job: str) -> str:
    """The Secret with which its images are pulled."""
    return f"{job}-registry"


def _env(wanted: Wanted, role: WantedRole, job: str) -> list[dict[str, Any]]:
    variables = dict(wanted.variables)
    if role.told_shm_mb is not None:
        variables.setdefault(SHARED_MEMORY_VARIABLE, str(role.told_shm_mb))
    literals = [{"name": name, "value": literal(value)} for name, value in variables.items()]
    secrets = [
        {
            "name": variable,
            "valueFrom": {"secretKeyRef": {"name": secret_name(job), "key": key}},
        }
        for variable, key in role.secret_variables
    ]
    return [*literals, *secrets]


def _resources(role: WantedRole) -> dict[str, Any]:
    asked: dict[str, Any] = {"cpu": role.cpus, "memory": f"{role.memory_mb}Mi"}
    return {**asked, GPU: role.gpus} if role.gpus > 0 else asked


def common_marks(
    image: str, cpus: str, memory: str, gpus: str, words: str, shm: str
) -> dict[str, str]:
    """The fields of a role's template, by the author's paths of what they are made from."""
    container = "template.spec.containers[0]"
    amounts = {"cpu": cpus, "memory": memory, GPU: gpus}
    return {
        f"{container}.image": image,
        f"{container}.command": words,
        f"{container}.volumeMounts": shm,
        "template.spec.volumes": shm,
        **{
            join(f"{container}.resources.{kind}", name): path
            for kind in ("requests", "limits")
            for name, path in amounts.items()
        },
    }
