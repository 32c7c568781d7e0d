"""What the brain is shown: a job's children, as the engine sees them now."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

import msgspec

from regatta.api.job import Intranet, Job, Progress

#: Ports that each replica owns, from its base upwards.
PORTS_PER_REPLICA = 20


class PodPhase(StrEnum):
    PENDING = "Pending"  # not placed yet, or waiting for its environment
    STARTING = "Starting"  # placed and being set up: init containers, image
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    UNKNOWN = "Unknown"

    @property
    def over(self) -> bool:
        return self in (PodPhase.SUCCEEDED, PodPhase.FAILED)


#: The reason of an end for which an init container is to blame; the message begins with its name,
#: up to a colon.
INIT_ERROR = "Init:Error"


class Exit(msgspec.Struct, frozen=True, kw_only=True):
    #: None where no process ever ended: a lost supervisor, a lost node.
    code: int | None
    reason: str = ""
    #: The last log lines, at most 4 KiB.
    message: str = ""
    finished_at: datetime | None = None


class Pod(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    uid: str
    role: str = ""
    index: int = 0
    attempt: int = 0
    revision: int = 0
    phase: PodPhase = PodPhase.PENDING
    #: Carries another owner's UID (or none): never adopted, never touched.
    foreign: bool = False
    #: Placed: on a node, or bound to an address and resources of this machine.
    scheduled: bool = False
    #: Where its peers reach it; None until the engine knows.
    host: str | None = None
    #: Why it is not running yet, in the scheduler's words.
    waiting: str = ""
    exit: Exit | None = None
    #: The engine's own evidence that the pod's end is not the program's fault.
    disruption: str = ""
    #: We asked it to end: its exit code is never judged.
    stopping: bool = False
    #: Being removed; its name is still taken.
    deleting: bool = False
    #: By when it should have been gone, its grace period included.
    gone_by: datetime | None = None
    #: Where it is placed, on a cluster.
    node: str = ""
    #: Since when its node has had it without letting any container begin; None where one may.
    held_since: datetime | None = None
    #: Its node knows of it. One that does not exist never does.
    taken_up: bool = True
    #: Held back only by an environment that it names and that may exist by now.
    waits_for_environment: bool = False


class Ports(msgspec.Struct, frozen=True):
    """Where replicas' port blocks begin.

    Replicas that share one host are `stride` apart. Where only one replica of a role may be on a
    host, roles are `role_stride` apart: a declared port then keeps a role's replicas separate.
    """

    base: int = 20000
    stride: int = 0
    role_stride: int = 0

    def of(self, ordinal: int, role: int) -> int:
        return self.base + self.stride * ordinal + self.role_stride * role


def port_block(first: int) -> tuple[int, int]:
    """First and last of a replica's ports."""
    return first, first + PORTS_PER_REPLICA - 1


class PodGroup(msgspec.Struct, frozen=True, kw_only=True):
    """A gang as a scheduler of the cluster knows it."""

    name: str
    uid: str = ""
    #: Carries the job's UID; a user's own is adopted, followed and never removed.
    ours: bool = False
    phase: str = ""
    min_member: int = 0
    queue: str = ""
    priority_class: str = ""
    min_resources: dict[str, str] = {}
    scheduler: str = "volcano"


class Gangs(msgspec.Struct, frozen=True, kw_only=True):
    """What a cluster has for starting pods together. The local engine does this itself."""

    #: Gang schedulers whose PodGroups the cluster knows.
    available: frozenset[str] = frozenset()
    #: The one for jobs that name none.
    default: str = ""
    groups: tuple[PodGroup, ...] = ()


class Children(msgspec.Struct, frozen=True, kw_only=True):
    pods: tuple[Pod, ...] = ()
    #: Revisions for which an environment of this job exists.
    environments: frozenset[int] = frozenset()
    #: Names of this job's Services; None on an engine whose replicas need none to be reached.
    services: frozenset[str] | None = None
    #: Pods' addresses are IPv6, which Paddle cannot read: names take their place in every mode.
    names_only: bool = False
    ports: Ports = Ports()
    #: ConfigMaps that pods' volumes name, and that the engine looked for in vain.
    missing: frozenset[str] = frozenset()
    #: False while the engine cannot give the job what its pods must carry, such as ports.
    admitted: bool = True
    #: And why, in words; empty while it has not tried.
    not_admitted_for: str = ""
    #: None on an engine that places gangs by itself.
    gangs: Gangs | None = None
    #: Whether the engine hears replicas report progress. One that is deaf calls no job hung.
    hears_progress: bool = False
    #: The latest progress a replica reported, and the awake clock when it came.
    progress: Progress | None = None
    heartbeat_awake: float | None = None


def meets_by_name(job: Job, names_only: bool) -> bool:
    """On a cluster: peers are given Services' names, which a replaced pod keeps."""
    return names_only or job.spec.intranet is Intranet.SERVICE
