"""What there is: runs, replicas, events, machines and the engine, as every door shows them."""

from __future__ import annotations

from datetime import datetime

import msgspec

from regatta.controller.retention import Retention

#: Reasons in a job's status that tell of the engine's own trouble with it, whatever its phase.
DISK_FULL, NOT_REMOVED = "DiskFull", "NotRemoved"


class Traits(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What an engine says of itself, so that no door needs to ask which one it is."""

    #: local or kubernetes: who runs the jobs in the end.
    engine: str = "local"
    #: Where jobs are when nobody says where.
    namespace: str = "default"
    #: Whether a `Shell` means something to it.
    takes_shell: bool = True
    #: What keeps it from its work just now, such as a full disk.
    notices: tuple[str, ...] = ()


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
    #: Limits of it that are counted in the queue, but that nothing holds here: `cpu, memory`.
    only_counted: str = ""


class RunView(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One run of a job, as its record tells it: that stays when another job took the name, and
    when the job was deleted because its time to live was over."""

    namespace: str
    name: str
    uid: str
    mode: str = ""
    phase: str = ""
    reason: str = ""
    message: str = ""
    created_at: datetime | None = None
    started_at: datetime | None = None
    #: None while it lives.
    ended_at: datetime | None = None
    #: Whether it is the job that has the name now.
    current: bool = True
    #: Whether there is more of it than this record: its replicas and events.
    whole: bool = True
    #: The uid of the run that took its name.
    replaced_by: str = ""
    #: What of it was removed, and why; empty: nothing.
    removed: str = ""
    #: What its logs take on disk, where that is known.
    log_bytes: int | None = None


class Removal(msgspec.Struct, frozen=True, kw_only=True):
    """What one call of `delete_many` did, and what there is left to do."""

    #: Jobs that are gone, and further runs that were on record.
    jobs: int = 0
    runs: int = 0
    #: Jobs that are being deleted while their replicas end: uid by name.
    ending: dict[str, str] = {}
    #: Jobs and runs that match and were not touched: ask again.
    left: int = 0


class EventView(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    #: Grows with time; what to go on from.
    id: int
    at: datetime
    type: str
    reason: str
    message: str
    #: Empty where it is about no job that is still there.
    job: str
    namespace: str


class NodeView(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What one machine has, what jobs hold of it, and what is in use where that is measured."""

    name: str
    ready: bool = True
    cpus: float
    cpus_held: float
    cpus_used: float | None = None
    memory_bytes: int
    memory_held: int
    memory_used: int | None = None
    gpus: int
    gpus_held: int
    pods: int
    pods_held: int


class ReplicaUse(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A replica that holds something now: what it asks for, and what it really uses."""

    namespace: str
    job: str
    replica: str
    state: str
    node: str = ""
    cpus: float
    memory_bytes: int
    gpus: int
    #: Which ones, where that is known.
    gpu_ids: tuple[str, ...] = ()
    cpus_used: float | None = None
    memory_used: int | None = None
    #: What it may use at most; None: as much as there is.
    cpus_limit: float | None = None
    memory_limit: int | None = None


class Storage(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What is kept, and the room that it takes, where the engine keeps it itself."""

    #: Jobs that have a name.
    live: int = 0
    finished: int = 0
    #: Runs on record, those of these jobs included, and when the first of them ended.
    runs: int = 0
    oldest: datetime | None = None
    #: Logs of all runs, and of those that have ended, which retention bounds.
    log_bytes: int = 0
    ended_log_bytes: int = 0
    database_bytes: int = 0
    #: Logs of jobs whose records were lost. Nothing but a person removes them.
    aside_bytes: int = 0
    #: None: somebody else's to say.
    retention: Retention | None = None


class Capacity(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    nodes: tuple[NodeView, ...] = ()
    replicas: tuple[ReplicaUse, ...] = ()
    #: What could not be looked at, and why.
    notes: tuple[str, ...] = ()
