"""What a job is, once it has been read, defaulted and validated.

These structs are the only form in which a job travels through the brain, the engines and the
store. They encode to the same JSON that `kubectl get pdj -o json` shows. Reading a user's file
into one is the work of `regatta.api.load`; nothing here validates.
"""

from __future__ import annotations

import re
from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

GROUP = "batch.paddlepaddle.org"
API_VERSION = f"{GROUP}/v1"
KIND = "PaddleJob"
#: Stands for each role that is not named, where something is said by role.
EVERY_ROLE = "*"
#: What a task is told of its shared memory. One that says it itself is believed.
SHARED_MEMORY_VARIABLE = "PAI_CURRENT_TASK_ROLE_SHM_MB"


class Phase(StrEnum):
    PENDING = "Pending"
    STARTING = "Starting"
    RUNNING = "Running"
    RESTARTING = "Restarting"
    SCALING = "Scaling"
    SUSPENDED = "Suspended"
    COMPLETED = "Completed"
    FAILED = "Failed"
    ABORTING = "Aborting"
    ABORTED = "Aborted"
    TERMINATING = "Terminating"

    @property
    def final(self) -> bool:
        return self in FINAL_PHASES


FINAL_PHASES = frozenset({Phase.COMPLETED, Phase.FAILED, Phase.ABORTED})


class Mode(StrEnum):
    PS = "PS"
    COLLECTIVE = "Collective"
    HETER = "Heter"
    SINGLE = "Single"
    CUSTOM = "Custom"


def mode_of_roles(*, tasks: bool, ps: bool, heter: bool, workers: int) -> Mode:
    """The mode of a job that names none."""
    if tasks:
        return Mode.CUSTOM
    if ps:
        return Mode.HETER if heter else Mode.PS
    return Mode.COLLECTIVE if workers > 1 else Mode.SINGLE


class CleanPodPolicy(StrEnum):
    ALWAYS = "Always"
    NEVER = "Never"
    ON_FAILURE = "OnFailure"
    ON_COMPLETION = "OnCompletion"


class Intranet(StrEnum):
    POD_IP = "PodIP"
    SERVICE = "Service"
    HOST = "Host"


class RestartScope(StrEnum):
    REPLICA = "Replica"
    ROLE = "Role"
    JOB = "Job"


class _Document(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Frozen, and camelCase in JSON, as Kubernetes objects are."""


class Completion(_Document, frozen=True):
    """When a task role decides the job's end: failures that fail it, successes that end it."""

    #: None, which a file says as null: however many fail, the job does not.
    min_failed: int | None = 1
    min_succeeded: int | None = None


class TaskPort(_Document, frozen=True):
    label: str
    count: int = 1
    #: The first of them, wherever the replica runs; None: of the block that it is given.
    begin_at: int | None = None

    @property
    def fixed(self) -> range:
        """Those that it has wherever the replica runs."""
        return (
            range(0) if self.begin_at is None else range(self.begin_at, self.begin_at + self.count)
        )


class RoleSpec(_Document, frozen=True):
    """`ps`, `worker`, `heter`, or one entry of `tasks` (which has the last four)."""

    replicas: int
    template: dict[str, Any]
    requests: int | None = None
    limits: int | None = None
    name: str = ""
    completion: Completion | None = None
    ports: tuple[TaskPort, ...] = ()
    #: What its programs call it where that is no DNS label: in `PAI_*` variables, and in answers.
    alias: str = ""

    @property
    def known_as(self) -> str:
        return self.alias or self.name


def in_variables(name: str) -> str:
    """A name as a part of a variable's, which a shell can read: a dash becomes an underscore."""
    return re.sub(r"[^A-Za-z0-9_]", "_", name)


class SchedulingPolicy(_Document, frozen=True):
    min_available: int | None = None
    queue: str = ""
    priority_class: str = ""
    min_resources: dict[str, str] = {}


class NoRetry(_Document, frozen=True):
    """Failures that another try would only repeat: the job fails, whatever its backoffLimit."""

    exit_codes: tuple[int, ...] = ()
    reasons: tuple[str, ...] = ()


#: As a backoffLimit: tried again however often it fails.
WITHOUT_END = -1


class RunPolicy(_Document, frozen=True):
    backoff_limit: int = 0
    no_retry: NoRetry = NoRetry()
    active_deadline_seconds: int | None = None
    ttl_seconds_after_finished: int | None = None
    suspend: bool = False
    abort: bool = False
    restart_scope: RestartScope = RestartScope.JOB
    hang_timeout_seconds: int | None = None


class JobSpec(_Document, frozen=True):
    mode: Mode
    clean_pod_policy: CleanPodPolicy = CleanPodPolicy.ON_COMPLETION
    with_gloo: int = 1
    intranet: Intranet = Intranet.POD_IP
    ps: RoleSpec | None = None
    worker: RoleSpec | None = None
    heter: RoleSpec | None = None
    tasks: tuple[RoleSpec, ...] = ()
    scheduling_policy: SchedulingPolicy | None = None
    elastic: int | None = None
    run_policy: RunPolicy = RunPolicy()

    def roles(self) -> dict[str, RoleSpec]:
        """Roles by name, in the order their pods are asked for: servers before trainers."""
        named = {"ps": self.ps, "heter": self.heter, "worker": self.worker}
        roles = {name: role for name, role in named.items() if role is not None}
        roles.update({task.name: task for task in self.tasks})
        return roles

    def path_of(self, role: str) -> str:
        """Where a role stands in the job file."""
        for number, task in enumerate(self.tasks):
            if task.name == role:
                return f"spec.tasks[{number}]"
        return f"spec.{role}"

    @property
    def replicas(self) -> int:
        return sum(role.replicas for role in self.roles().values())


class Ref(_Document, frozen=True):
    name: str
    uid: str = ""


class RoleStatus(_Document, frozen=True):
    """Counts a person reads, and what the brain must remember about a role."""

    pending: int = 0
    starting: int = 0
    running: int = 0
    failed: int = 0
    succeeded: int = 0
    unknown: int = 0
    ready: str = ""
    replicas: int = 0
    refs: tuple[Ref, ...] = ()
    #: Indexes that have succeeded in this attempt; they must not run again when their pod is gone.
    done: tuple[int, ...] = ()
    #: Pods of an attempt below this one are stale. Per index where only one replica restarted.
    attempt: int = 0
    replica_attempts: dict[str, int] = {}


#: A fixed list, so that `kubectl wait --for=condition=...` can be relied on.
CONDITION_TYPES = ("Admitted", "EnvironmentReady", "Suspended", "Completed", "Failed")


class Condition(_Document, frozen=True):
    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None
    observed_generation: int = 0


#: The reason of a failure that is the whole job's: no replica reported progress in time.
HUNG = "Hung"


class Failure(_Document, frozen=True):
    """The replica that failed first, and what it said last."""

    pod: str
    role: str
    index: int
    exit_code: int | None = None
    reason: str = ""
    message: str = ""
    finished_at: datetime | None = None


class Progress(_Document, frozen=True):
    step: int = 0
    total: int | None = None
    metrics: dict[str, float] = {}
    #: What was reported and is no number, such as a loss of nan, by name.
    not_numbers: dict[str, str] = {}
    at: datetime | None = None
    #: Seconds left, as the pace so far has it.
    eta_seconds: float | None = None


class JobStatus(_Document, frozen=True):
    phase: Phase | None = None
    mode: str = ""
    ps: RoleStatus | None = None
    worker: RoleStatus | None = None
    heter: RoleStatus | None = None
    tasks: dict[str, RoleStatus] = {}
    conditions: tuple[Condition, ...] = ()
    observed_generation: int = 0
    start_time: datetime | None = None
    completion_time: datetime | None = None
    #: Failures counted against backoffLimit.
    restarts: int = 0
    #: Which try this is, from 0; restarts, resumes and free restarts all make a new one.
    attempt: int = 0
    #: The environment that this attempt's pods name.
    revision: int = 0
    #: Replica counts that the environment was (or will be) written for.
    shape: dict[str, int] = {}
    #: A fingerprint of the templates that this attempt's pods are made from.
    made_from: str = ""
    #: When free restarts happened, for the hourly limit.
    disruptions: tuple[datetime, ...] = ()
    #: No pod of this attempt is created before then.
    restart_at: datetime | None = None
    #: The engine's awake clock when the job started and when progress was last seen.
    started_awake: float | None = None
    heartbeat_awake: float | None = None
    reason: str = ""
    message: str = ""
    #: What is wrong with the spec as it stands, while the job goes on with the one before.
    spec_problem: str = ""
    failure: Failure | None = None
    progress: Progress | None = None

    def roles(self) -> dict[str, RoleStatus]:
        named = {"ps": self.ps, "heter": self.heter, "worker": self.worker}
        roles = {name: role for name, role in named.items() if role is not None}
        return roles | self.tasks


class Metadata(_Document, frozen=True):
    name: str
    namespace: str = "default"
    uid: str = ""
    generation: int = 1
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    finalizers: tuple[str, ...] = ()


class Job(_Document, frozen=True):
    metadata: Metadata
    spec: JobSpec
    status: JobStatus = JobStatus()
    api_version: str = API_VERSION
    kind: str = KIND

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def namespace(self) -> str:
        return self.metadata.namespace

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def deleting(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    @property
    def finished(self) -> bool:
        return self.status.phase is not None and self.status.phase.final


encode = msgspec.json.Encoder().encode
decode_job = msgspec.json.Decoder(Job).decode


def document(value: msgspec.Struct) -> dict[str, Any]:
    """The plain JSON-ready form: what `-o json` prints and the REST API answers."""
    built: dict[str, Any] = msgspec.to_builtins(value)
    if isinstance(value, Job):  # omit_defaults would leave these two out
        built = {"apiVersion": value.api_version, "kind": value.kind, **built}
    return built
