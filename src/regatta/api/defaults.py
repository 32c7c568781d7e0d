"""What a job is when its file does not say: the mode it has, and every other default.

Runs on a draft that the rules have passed; yields the frozen Job.
"""

from __future__ import annotations

from typing import Any

import msgspec

from regatta.api import quantity
from regatta.api.checks.schema import (
    Draft,
    JobDraft,
    MetadataDraft,
    RoleDraft,
    RunPolicyDraft,
    SchedulingPolicyDraft,
    SpecDraft,
    TaskDraft,
)
from regatta.api.job import (
    CleanPodPolicy,
    Completion,
    Intranet,
    Job,
    JobSpec,
    Metadata,
    Mode,
    RestartScope,
    RoleSpec,
    RunPolicy,
    SchedulingPolicy,
    TaskPort,
    mode_of_roles,
)

NAMESPACE = "default"


def mode_of(spec: SpecDraft) -> Mode:
    """As written, or else what the roles make it."""
    if spec.mode is not None:
        return spec.mode
    return mode_of_roles(
        tasks=bool(spec.tasks),
        ps=spec.ps is not None,
        heter=spec.heter is not None,
        workers=(spec.worker.replicas if spec.worker else None) or 1,
    )


def gloo_of(spec: SpecDraft) -> int:
    return 1 if spec.with_gloo is None else spec.with_gloo


def intranet_of(spec: SpecDraft) -> Intranet:
    return spec.intranet or Intranet.POD_IP


def scope_of(spec: SpecDraft) -> RestartScope:
    return (spec.run_policy and spec.run_policy.restart_scope) or RestartScope.JOB


def build(draft: JobDraft) -> Job:
    return Job(
        metadata=_metadata(draft.metadata or MetadataDraft()),
        spec=_spec(draft.spec or SpecDraft()),
    )


def _metadata(draft: MetadataDraft) -> Metadata:
    return Metadata(
        name=draft.name or "",
        namespace=draft.namespace or NAMESPACE,
        labels=_texts(draft.labels),
        annotations=_texts(draft.annotations),
    )


def _spec(draft: SpecDraft) -> JobSpec:
    policy = draft.clean_pod_policy or draft.clean_policy or CleanPodPolicy.ON_COMPLETION
    return JobSpec(
        mode=mode_of(draft),
        clean_pod_policy=policy,
        with_gloo=gloo_of(draft),
        intranet=intranet_of(draft),
        ps=_role(draft.ps),
        worker=_role(draft.worker),
        heter=_role(draft.heter),
        tasks=tuple(_task(task) for task in draft.tasks or () if task is not None),
        scheduling_policy=_scheduling(draft.scheduling_policy),
        elastic=draft.elastic,
        run_policy=msgspec.structs.replace(
            RunPolicy(), **_given(draft.run_policy or RunPolicyDraft())
        ),
    )


def _role(draft: RoleDraft | None) -> RoleSpec | None:
    return None if draft is None else RoleSpec(**_size(draft))


def _task(draft: TaskDraft) -> RoleSpec:
    completion = Completion(**_given(draft.completion)) if draft.completion else None
    ports = tuple(TaskPort(**_given(port)) for port in draft.ports or () if port is not None)
    return RoleSpec(**_size(draft), name=draft.name or "", completion=completion, ports=ports)


def _size(draft: RoleDraft) -> dict[str, Any]:
    return {
        "replicas": draft.replicas or 1,
        "template": draft.template or {},
        "requests": draft.requests,
        "limits": draft.limits,
    }


def _scheduling(draft: SchedulingPolicyDraft | None) -> SchedulingPolicy | None:
    if draft is None:
        return None
    amounts = (draft.min_resources or {}).items()
    texts = {name: quantity.written(amount) for name, amount in amounts if amount is not None}
    return SchedulingPolicy(**_given(draft) | {"min_resources": texts})


def _given(draft: Draft) -> dict[str, Any]:
    return {name: value for name, value in dict(draft).items() if value is not None}


def _texts(given: dict[str, Any] | None) -> dict[str, str]:
    return {key: str(value) for key, value in (given or {}).items() if value is not None}
