"""The shape of a PaddleJob as it comes in: every field, its type, and a sentence when it is wrong.

Every field may be absent here. A value of the wrong shape is reported and then taken for absent,
so that the rules (`rules`) still see the rest and all problems come at once. What
*must* be there is one of those rules. The JSON schema of these drafts is what the CRD is made of
(`regatta.api.crd`), so each validator also says which values it lets through.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel

from regatta.api.checks.fields import (
    MOST,
    NO_TEXT,
    SECONDS,
    SENTENCE,
    drafted,
    flag,
    list_of,
    text,
    whole,
    wrong,
)
from regatta.api.checks.names import LONGEST
from regatta.api.checks.quotes import about_text
from regatta.api.checks.suggestions import closest, did_you_mean, listed, shown
from regatta.api.job import WITHOUT_END, CleanPodPolicy, Intranet, Mode, RestartScope
from regatta.api.problems import Problem
from regatta.api.source.paths import join, join_all
from regatta.api.source.yaml import Mark

TEN_YEARS = 10 * 366 * 24 * 3600
MOST_PORT = 65_535
MOST_EXIT_CODE = 255
MOST_REASONS = 16


def _for_containers(field: str) -> str:
    return (
        "it is a number of replicas here. What a container has is written under "
        f"template.spec.containers[0].resources.{field}"
    )


def _one_of(options: type[Any], also: dict[str, str]) -> BeforeValidator:
    words = [str(option.value) for option in options]

    def check(value: object) -> object:
        value = also.get(value, value) if isinstance(value, str) else value
        if value is None or (isinstance(value, str) and value in words):
            return value
        raise wrong(value, f"{did_you_mean(value, words)}Allowed: {listed(words, 'or')}")

    allowed = Literal[*words, *also]  # type: ignore[valid-type]
    return BeforeValidator(check, json_schema_input_type=allowed | None)


def _quantity(value: object) -> object:
    if value is None or (isinstance(value, str | int | float) and not isinstance(value, bool)):
        return value
    raise wrong(value, 'write a quantity such as 2, "500m" or "1Gi"')


def _is_exit_code(value: object) -> bool:
    return type(value) is int and 1 <= value <= MOST_EXIT_CODE


def _is_reason(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= LONGEST


Text = Annotated[str | None, text("text")]
Flag = Annotated[bool | None, BeforeValidator(flag)]
Replicas = Annotated[int | None, whole(1, MOST, "a whole number")]
Seconds = Annotated[int | None, whole(1, TEN_YEARS, SECONDS)]
TextMap = dict[str, Text] | None
QuantityMap = dict[str, Annotated[str | int | float | None, BeforeValidator(_quantity)]] | None


class Draft(BaseModel):
    """A map whose keys are all known."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", hide_input_in_errors=True)


class MetadataDraft(Draft):
    name: Text = None
    namespace: Text = None
    labels: TextMap = None
    annotations: TextMap = None
    # What an API server adds, in a file that was exported from one. Not read.
    uid: Any = None
    generation: Any = None
    creation_timestamp: Any = None
    deletion_timestamp: Any = None
    deletion_grace_period_seconds: Any = None
    resource_version: Any = None
    managed_fields: Any = None
    owner_references: Any = None
    finalizers: Any = None
    self_link: Any = None


class RoleDraft(Draft):
    replicas: Replicas = None
    requests: Annotated[
        int | None, whole(1, MOST, "a whole number", _for_containers("requests"))
    ] = None
    limits: Annotated[int | None, whole(1, MOST, "a whole number", _for_containers("limits"))] = (
        None
    )
    template: dict[str, Any] | None = None


class CompletionDraft(Draft):
    min_failed: Replicas = None
    min_succeeded: Replicas = None


class TaskPortDraft(Draft):
    label: Text = None
    count: Annotated[int | None, whole(1, 20, "a whole number")] = None
    begin_at: Annotated[int | None, whole(1, MOST_PORT, "a whole number")] = None


class TaskDraft(RoleDraft):
    name: Text = None
    alias: Text = None
    completion: CompletionDraft | None = None
    ports: list[TaskPortDraft | None] | None = None


class SchedulingPolicyDraft(Draft):
    min_available: Replicas = None
    queue: Text = None
    priority_class: Text = None
    min_resources: QuantityMap = None


class NoRetryDraft(Draft):
    exit_codes: Annotated[
        list[int] | None,
        list_of(
            _is_exit_code,
            f"exit codes, whole numbers from 1 to {MOST_EXIT_CODE}",
            Annotated[int, Field(ge=1, le=MOST_EXIT_CODE)],
            MOST_EXIT_CODE,
        ),
    ] = None
    reasons: Annotated[
        list[str] | None,
        list_of(
            _is_reason,
            "reasons that a replica may end with, such as OOMKilled",
            Annotated[str, Field(min_length=1, max_length=LONGEST)],
            MOST_REASONS,
        ),
    ] = None


class RunPolicyDraft(Draft):
    backoff_limit: Annotated[int | None, whole(WITHOUT_END, 1000, "a whole number")] = None
    no_retry: NoRetryDraft | None = None
    active_deadline_seconds: Seconds = None
    ttl_seconds_after_finished: Annotated[int | None, whole(0, TEN_YEARS, SECONDS)] = None
    suspend: Flag = None
    abort: Flag = None
    restart_scope: Annotated[RestartScope | None, _one_of(RestartScope, {})] = None
    hang_timeout_seconds: Seconds = None


_Clean = Annotated[CleanPodPolicy | None, _one_of(CleanPodPolicy, {})]


class SpecDraft(Draft):
    mode: Annotated[Mode | None, _one_of(Mode, {})] = None
    clean_pod_policy: _Clean = None
    clean_policy: _Clean = None
    with_gloo: Annotated[
        int | None, whole(0, 2, "0 (off), 1 (workers) or 2 (workers and servers)")
    ] = None
    intranet: Annotated[Intranet | None, _one_of(Intranet, {"HostNetwork": "Host"})] = None
    ps: RoleDraft | None = None
    worker: RoleDraft | None = None
    heter: RoleDraft | None = None
    tasks: list[TaskDraft | None] | None = None
    scheduling_policy: SchedulingPolicyDraft | None = None
    elastic: Annotated[int | None, whole(0, 1000, "a whole number")] = None
    run_policy: RunPolicyDraft | None = None

    def roles(self) -> dict[str, tuple[str, RoleDraft]]:
        """Path → (role name, role), in the order of the file's schema."""
        named = {"ps": self.ps, "worker": self.worker, "heter": self.heter}
        roles = {f"spec.{name}": (name, role) for name, role in named.items() if role is not None}
        for i, task in enumerate(self.tasks or ()):
            if task is not None:
                roles[f"spec.tasks[{i}]"] = (task.name or "", task)
        return roles


class JobDraft(Draft):
    api_version: Any = None
    kind: Any = None
    metadata: MetadataDraft | None = None
    spec: SpecDraft | None = None
    #: What a running job has become; a file that brings one is read without it.
    status: Any = None


def read(
    document: dict[str, Any], marks: Mapping[str, Mark]
) -> tuple[JobDraft, list[Problem], set[str]]:
    """The document as far as it can be read, what could not be, and the places that explains.

    A misspelt `wroker` explains why there is no `worker`, which need not be told as well.
    """
    draft, errors = drafted(JobDraft, document)
    problems: list[Problem] = []
    explained: set[str] = set()
    for found in errors:
        loc = found["loc"]
        problems.append(_problem(document, loc, found["type"], found["msg"], marks))
        explained |= {problems[-1].path, *_meant(loc, found["type"])}
    return draft, problems, explained


def _meant(loc: tuple[int | str, ...], kind: str) -> set[str]:
    """The field that an unknown one stands for, as far as one can guess."""
    if kind != "extra_forbidden":
        return set()
    key = str(loc[-1])
    here, model = _model_at(loc)
    if issubclass(model, RoleDraft) and key in _POD_FIELDS:
        meant: str | None = "template"
    elif here == "spec" and key in _OTHER_ROLES:
        meant = "ps" if "server" in key else "worker"
    else:
        meant = closest(key, _fields(model))
    return {join_all("", (*loc[:-1], meant))} if meant else set()


def _problem(
    document: object,
    loc: tuple[int | str, ...],
    kind: str,
    sentence: str,
    marks: Mapping[str, Mark],
) -> Problem:
    path = join_all("", loc)
    if kind == SENTENCE:
        return Problem(path, sentence)
    if kind == "extra_forbidden":
        return Problem(path, _about_unknown(loc))
    value: Any = document
    for step in loc:
        value = value[step]
    if kind == NO_TEXT:
        return Problem(path, about_text(value, path, marks.get(path)))
    wanted = "a list" if kind == "list_type" else "a map"
    example = "`- ` items" if kind == "list_type" else "indented `key: value` lines"
    return Problem(path, f"found {shown(value)}; write {wanted}: {example}")


@cache
def _fields(model: type[Draft]) -> list[str]:
    return [str(field.alias) for field in model.model_fields.values()]


_MAPS: dict[str, type[Draft]] = {
    "": JobDraft,
    "metadata": MetadataDraft,
    "spec": SpecDraft,
    "spec.ps": RoleDraft,
    "spec.worker": RoleDraft,
    "spec.heter": RoleDraft,
    "spec.tasks[]": TaskDraft,
    "spec.tasks[].completion": CompletionDraft,
    "spec.tasks[].ports[]": TaskPortDraft,
    "spec.schedulingPolicy": SchedulingPolicyDraft,
    "spec.runPolicy": RunPolicyDraft,
    "spec.runPolicy.noRetry": NoRetryDraft,
}

#: Words of neighbouring systems, and what they are called here.
_ELSEWHERE = {
    "paddleReplicaSpecs": "that is Kubeflow's PaddleJob; here the roles are ps and worker",
    "sampleSetRef": "sample sets are not supported; mount the data as a volume of the template",
    "startInOrder": "servers are always asked for before workers; leave it out",
    "generateName": "a job is known by its name; write metadata.name",
    "pserver": "the servers are called ps",
    "pservers": "the servers are called ps",
    "server": "the servers are called ps",
    "servers": "the servers are called ps",
    "trainer": "the trainers are called worker",
    "trainers": "the trainers are called worker",
    "master": "there is no master role; worker 0 is the master",
    "taskRoles": "task roles are called tasks",
}
_OTHER_ROLES = {"paddleReplicaSpecs", "taskRoles"} | {
    f"{role}{plural}" for role in ("pserver", "server", "trainer") for plural in ("", "s")
}
_POD_FIELDS = ("containers", "volumes", "nodeSelector", "schedulerName", "tolerations", "affinity",
               "restartPolicy", "initContainers", "spec")  # fmt: skip


def _model_at(loc: tuple[int | str, ...]) -> tuple[str, type[Draft]]:
    """The map that holds this place, as `_MAPS` spells it."""
    here = ""
    for step in loc[:-1]:
        here = f"{here}[]" if isinstance(step, int) else join(here, step)
    return here, _MAPS[here]


def _about_unknown(loc: tuple[int | str, ...]) -> str:
    key = str(loc[-1])
    here, model = _model_at(loc)
    known = _fields(model)
    if here == "metadata":
        known = known[:4]
    if here in ("spec", "metadata") and key in _ELSEWHERE:
        return f"unknown field: {_ELSEWHERE[key]}"
    if issubclass(model, RoleDraft) and key in _POD_FIELDS:
        inside = "template" if key == "spec" else "template.spec"
        return f"unknown field: it belongs to the pod; write {here}.{inside}.{key}"
    if key not in known and closest(key, known) is None:
        for place, model in _MAPS.items():
            if key in _fields(model) and place not in (here, "metadata") and "[]" not in place:
                return f"unknown field: it belongs under {place or 'the top level'}"
    listing = [name for name in known if name != "cleanPolicy"]
    return f"unknown field; {did_you_mean(key, known)}Known here: {listed(listing)}"
