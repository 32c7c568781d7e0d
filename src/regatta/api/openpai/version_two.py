"""OpenPAI's v2 config, the YAML one: what it asks for."""

from __future__ import annotations

import copy
from typing import Any

from regatta.api.errors import InvalidConfig
from regatta.api.job import Intranet
from regatta.api.openpai import secret_values, version_two_rules
from regatta.api.openpai.paddlejob import DEFAULT_CLUSTER, common_marks
from regatta.api.openpai.reading import news, read
from regatta.api.openpai.retries import run_policy
from regatta.api.openpai.scripts import strict
from regatta.api.openpai.templates import SECRETS
from regatta.api.openpai.version_two_advice import advise, retries_of
from regatta.api.openpai.version_two_fields import ConfigDraft, PrerequisiteDraft, TaskRoleDraft
from regatta.api.openpai.version_two_rules import pieces_of, values_of
from regatta.api.openpai.wanted import Setting, Wanted, WantedPort, WantedRole, shared_variables
from regatta.api.source.limits import capped
from regatta.api.source.paths import join

DEFAULT_SHM_MB = 512


def wanted(config: dict[str, Any], setting: Setting) -> Wanted:
    """Raises InvalidConfig with every problem at once."""
    draft, problems, explained = read(ConfigDraft, config)
    problems += news(version_two_rules.check(draft), explained)
    if errors := [problem for problem in problems if problem.severity == "error"]:
        raise InvalidConfig(capped(errors), 2)
    cluster = (draft.defaults and draft.defaults.virtual_cluster) or DEFAULT_CLUSTER
    retries = retries_of(draft)
    alone = not draft.gang and any(role.task_retry_count for role in draft.roles().values())
    shared = alone and sum(role.tasks for role in draft.roles().values()) > 1
    name, root = draft.name or "", setting.default_fs_uri
    return Wanted(
        protocol=2,
        name=name,
        user=setting.owner,
        virtual_cluster=cluster,
        roles=tuple(_role(name, role, draft) for name, role in draft.roles().items()),
        variables=shared_variables(setting.owner, name, cluster, root),
        run_policy=run_policy(retries, 2, each_alone=alone),
        # A replica that starts again by itself has a new address, and the others know its name.
        intranet=Intranet.SERVICE.value if shared else "",
        secrets=_secrets(draft),
        registries=_registries(draft),
        extras=copy.deepcopy(config.get("extras") or {}),
        config=secret_values.masked(config),
        warnings=(*problems, *advise(draft)),
        marks={
            "metadata.name": "name",
            "spec.tasks": "taskRoles",
            "spec.runPolicy": "jobRetryCount",
            "spec.runPolicy.restartScope": "extras.gangAllocation",
            "spec.intranet": "extras.gangAllocation",
            "spec.schedulingPolicy.queue": "defaults.virtualCluster",
        },
    )


def _role(name: str, role: TaskRoleDraft, draft: ConfigDraft) -> WantedRole:
    path = join("taskRoles", name)
    image = draft.prerequisite(role.docker_image, "dockerimage")
    asked, options = role.resource_per_instance, role.extra_container_options
    assert image is not None  # the rules have seen to both
    assert asked is not None
    completion: dict[str, int | None] = {}
    if role.completion and "min_failed_instances" in role.completion.model_fields_set:
        completion["minFailed"] = _possible(role.completion.min_failed_instances, role.tasks)
    wanted = role.completion.min_succeeded_instances if role.completion else None
    least = _possible(wanted, role.tasks)
    if least is not None:
        completion["minSucceeded"] = least
    said = options.shm_mb if options else None
    filled = secret_values.fill(pieces_of(name, draft), values_of(role, draft))
    return WantedRole(
        name=name,
        replicas=role.tasks,
        image=image.uri,
        cpus=asked.cpu or 0,
        memory_mb=asked.memory_mb or 0,
        gpus=asked.gpu or 0,
        words=tuple(strict(filled.script, filled.fillings)),
        shm_mb=DEFAULT_SHM_MB if said is None else said,
        told_shm_mb=0 if said is None else None,  # as OpenPAI has it, whatever there is
        ports=tuple(
            WantedPort(label=label, count=count or 1)
            for label, count in (asked.ports or {}).items()
        ),
        completion=completion,
        secret_variables=filled.variables,
        pulls_with_secret=secret_values.registry(image.auth, {}) is not None,
        marks=_marks(path, asked.ports or {}, _place(image, draft)),
    )


def _possible(count: int | None, tasks: int) -> int | None:
    """A number of ends that can never come is none."""
    return count if count is not None and count <= tasks else None


def _marks(path: str, ports: dict[str, int | None], image: str) -> dict[str, str]:
    resources = f"{path}.resourcePerInstance"
    return {
        "": path,
        "replicas": f"{path}.instances",
        "completion": f"{path}.completion",
        "completion.minFailed": f"{path}.completion.minFailedInstances",
        "completion.minSucceeded": f"{path}.completion.minSucceededInstances",
        "ports": f"{resources}.ports",
        **{f"ports[{i}]": join(f"{resources}.ports", label) for i, label in enumerate(ports)},
        "template.spec.imagePullSecrets": f"{image}.auth",
        **common_marks(
            image=f"{image}.uri",
            cpus=f"{resources}.cpu",
            memory=f"{resources}.memoryMB",
            gpus=f"{resources}.gpu",
            words=f"{path}.commands",
            shm=f"{path}.extraContainerOptions.shmMB",
        ),
    }


def _place(item: PrerequisiteDraft, draft: ConfigDraft) -> str:
    return f"prerequisites[{[p is item for p in draft.prerequisites or ()].index(True)}]"


def _secrets(draft: ConfigDraft) -> dict[str, str]:
    texts = [piece.text for name in draft.roles() for piece in pieces_of(name, draft)]
    return secret_values.values_of(secret_values.used_in(texts), draft.secrets or {})


def _registries(draft: ConfigDraft) -> tuple[Any, ...]:
    values = {"parameters": draft.parameters or {}, SECRETS: draft.secrets or {}}
    used = {role.docker_image for role in draft.roles().values()}
    found = (
        secret_values.registry(item.auth, values)
        for item in draft.prerequisites or ()
        if item and item.type == "dockerimage" and item.name in used
    )
    return tuple(dict.fromkeys(entry for entry in found if entry is not None))
