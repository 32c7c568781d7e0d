"""The protocol between doors and engines. A door only ever reads what an engine keeps."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Protocol

import msgspec

from regatta.api.job import Job
from regatta.api.problems import Problem


class Submission(msgspec.Struct, frozen=True, kw_only=True):
    """A job as it came through a door: the text, what the door changed, and where it was said."""

    #: The YAML or JSON text of the file, perhaps several documents.
    text: str
    #: Where the text came from, for messages: a path, or `-`.
    source: str = "-"
    name: str | None = None
    namespace: str | None = None
    #: `--env K=V` for every replica, `--set path=value`, `--volume name=dir`.
    env: dict[str, str] = {}
    sets: tuple[str, ...] = ()
    volumes: dict[str, str] = {}
    #: Unknown fields in pod templates are errors.
    strict: bool = False
    #: Replace a job of the same name even while it is live.
    replace: bool = False
    #: Run a job that asks for GPUs on a machine without any.
    no_gpu: bool = False
    #: Skip the checks that need the training environment.
    no_preflight: bool = False
    #: The submitting shell: working directory, the short list of variables, the interpreter.
    directory: str = "/"
    shell: dict[str, str] = {}
    python: str | None = None
    #: none (processes of this machine), docker or podman.
    runtime: str = "none"


class Accepted(msgspec.Struct, frozen=True, kw_only=True):
    job: Job
    warnings: tuple[Problem, ...] = ()
    #: The uid of the finished job of this name that made room, if any.
    replaced: str = ""


class Preview(msgspec.Struct, frozen=True, kw_only=True):
    """What a submission would create, exactly, and nothing created."""

    job: Job
    warnings: tuple[Problem, ...]
    #: Pod and ConfigMap manifests in creation order.
    objects: tuple[dict[str, Any], ...]
    #: Per pod name: the environment its first container would see, and its port block.
    environment: dict[str, dict[str, str]]
    ports: dict[str, tuple[int, int]]
    #: What a person should know: that addresses are the next free ones, what is ignored.
    notes: tuple[str, ...] = ()


class PodView(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A replica as doors show it, alive or long gone (its record and log stay with the job)."""

    name: str
    uid: str
    role: str
    index: int
    attempt: int
    phase: str
    #: Belongs to the job's present attempt, and was not cleaned.
    current: bool
    #: The cluster's node that it is on; empty on a machine, which is one.
    node: str = ""
    address: str = ""
    ports: tuple[int, int] | None = None
    gpus: tuple[str, ...] = ()
    pid: int | None = None
    restarts: int = 0
    exit_code: int | None = None
    reason: str = ""
    message: str = ""
    created_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    stopping: bool = False
    cpu_percent: float | None = None
    memory_bytes: int | None = None


class EventView(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    id: int
    at: datetime
    type: str
    reason: str
    message: str
    job: str
    namespace: str


class LogQuery(msgspec.Struct, frozen=True, kw_only=True):
    role: str | None = None
    index: int | None = None
    #: The run before the present one of each replica.
    previous: bool = False
    since: datetime | None = None
    tail: int | None = None
    grep: str | None = None
    follow: bool = False
    #: Resume positions, per pod uid, as a LogBatch gave them.
    after: dict[str, str] = {}


class LogLine(msgspec.Struct, frozen=True, array_like=True):
    pod: str  # `worker-0`: role and index
    at: str  # RFC 3339
    stream: str  # stdout, stderr
    text: str


class LogBatch(msgspec.Struct, frozen=True):
    lines: tuple[LogLine, ...]
    #: Where to go on from, per pod uid: `run:segment:offset`.
    after: dict[str, str]


class MachineView(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What the machine has, what jobs hold of it, and what is in use right now."""

    cpus: float
    cpus_held: float
    cpu_percent: float
    memory_bytes: int
    memory_held: int
    memory_used: int
    gpus: tuple[str, ...]
    gpus_held: int
    pods: int
    pods_held: int


class Engine(Protocol):
    def submit(self, submission: Submission) -> Accepted: ...

    def preview(self, submission: Submission) -> Preview: ...

    def get(self, namespace: str, name: str) -> Job: ...

    def list(self, namespace: str | None) -> list[Job]: ...

    def stop(self, namespace: str, name: str) -> Job:
        """Abort a live job; end the servers that a finished one left running."""
        ...

    def delete(self, namespace: str, name: str) -> None: ...

    def scale(self, namespace: str, name: str, role: str, replicas: int) -> Job: ...

    def suspend(self, namespace: str, name: str) -> Job: ...

    def resume(self, namespace: str, name: str) -> Job: ...

    def pods(self, namespace: str, name: str) -> builtins.list[PodView]: ...

    def events(
        self, namespace: str | None, name: str | None, after: int = 0
    ) -> builtins.list[EventView]: ...

    def logs(self, namespace: str, name: str, query: LogQuery) -> Iterator[LogBatch]:
        """1. Lines of one pod come in order; pods interleave by time within a batch.
        2. With `follow`, ends only when the job is final (or gone) and every log is drained;
           an empty batch is yielded at least every second, so that a caller can notice a hang-up.
        3. `after` of any batch resumes without loss or repetition, across rotation and restarts.
        """
        ...

    def machine(self) -> MachineView: ...

    def wait_for_change(self, version: int, timeout: float) -> int:
        """Block until any job, pod or event changed after `version`; the new version."""
        ...
