"""OpenPAI's v2 config, the YAML one: its fields. Their rules stand in `version_two_rules`."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import ConfigDict, Field

from regatta.api.checks.schema import Draft, Flag, Text
from regatta.api.openpai.reading import FromOne, FromZero, Hidden, Ports, count_or_never, number
from regatta.api.openpai.retries import MOST_RETRIES

RUNTIME_PLUGIN = "com.microsoft.pai.runtimeplugin"

Texts = list[Text] | None
Minimum = Annotated[int | None, count_or_never(minus_one=True)]
Retries = Annotated[int | None, number(0, MOST_RETRIES)]


class AuthDraft(Draft):
    username: Text = None
    password: Hidden = None
    registryuri: Text = None


class CallbackDraft(Draft):
    event: Text = None
    commands: Texts = None


class PrerequisiteDraft(Draft):
    """Four kinds in one; which keys may stand in which is a rule."""

    model_config = ConfigDict(extra="allow")

    protocol_version: Any = None
    name: Text = None
    type: Text = None
    version: Any = None
    contributor: Text = None
    description: Text = None
    uri: Any = None
    auth: AuthDraft | None = None
    plugin: Text = None
    require: Texts = None
    callbacks: list[CallbackDraft | None] | None = None
    failure_policy: Text = None


class CompletionDraft(Draft):
    min_failed_instances: Minimum = None
    min_succeeded_instances: Minimum = None


class ContainerOptionsDraft(Draft):
    shm_mb: FromOne = Field(None, alias="shmMB")
    infiniband: Flag = None


class ResourcesDraft(Draft):
    cpu: FromOne = None
    memory_mb: FromOne = Field(None, alias="memoryMB")
    gpu: FromZero = None
    ports: dict[str, Ports] | None = None


class TaskRoleDraft(Draft):
    protocol_version: Any = None
    instances: FromOne = None
    task_retry_count: Retries = None
    completion: CompletionDraft | None = None
    docker_image: Text = None
    data: Text = None
    output: Text = None
    script: Text = None
    prerequisites: Texts = None
    extra_container_options: ContainerOptionsDraft | None = None
    resource_per_instance: ResourcesDraft | None = None
    commands: Texts = None

    @property
    def tasks(self) -> int:
        return 1 if self.instances is None else self.instances


class DeploymentRoleDraft(Draft):
    pre_commands: Texts = None
    post_commands: Texts = None


class DeploymentDraft(Draft):
    """Further keys mean nothing to OpenPAI either, and its own examples have some."""

    model_config = ConfigDict(extra="allow")

    name: Text = None
    task_roles: dict[str, DeploymentRoleDraft | None] | None = None


class DefaultsDraft(Draft):
    model_config = ConfigDict(extra="allow")

    virtual_cluster: Text = None
    deployment: Text = None


class PluginDraft(Draft):
    plugin: Text = None
    parameters: dict[str, Any] | None = None
    failure_policy: Text = None
    taskroles: Texts = None


class ExtrasDraft(Draft):
    """Anybody may keep anything here; these mean something to us."""

    model_config = ConfigDict(extra="allow")

    gang_allocation: Flag = None
    plugins: list[PluginDraft | None] | None = Field(None, alias="com.microsoft.pai.runtimeplugin")


class ConfigDraft(Draft):
    protocol_version: Any = None
    name: Text = None
    type: Text = None
    version: Any = None
    contributor: Text = None
    description: Text = None
    prerequisites: list[PrerequisiteDraft | None] | None = None
    parameters: dict[str, Any] | None = None
    secrets: Any = None
    job_retry_count: Retries = None
    task_roles: dict[str, TaskRoleDraft | None] | None = None
    deployments: list[DeploymentDraft | None] | None = None
    defaults: DefaultsDraft | None = None
    extras: ExtrasDraft | None = None

    def roles(self) -> dict[str, TaskRoleDraft]:
        return {name: role for name, role in (self.task_roles or {}).items() if role is not None}

    def prerequisite(self, name: str | None, kind: str | None = None) -> PrerequisiteDraft | None:
        """Of that name, and of that type where one is meant."""
        for item in self.prerequisites or ():
            if item and name and item.name == name and kind in (None, item.type):
                return item
        return None

    @property
    def deployment(self) -> DeploymentDraft | None:
        """The one that is chosen."""
        chosen = self.defaults and self.defaults.deployment
        return next((d for d in self.deployments or () if d and chosen and d.name == chosen), None)

    @property
    def gang(self) -> bool:
        return self.extras is None or self.extras.gang_allocation is not False
