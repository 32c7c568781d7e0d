"""What the brain answers: plain data that an engine applies and a dry run prints.

An engine applies a plan in this order: status, stops and deletes, creates, touches, events.
A crash in between then loses neither a count nor a reason.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

import msgspec

from regatta.api.job import JobStatus


class Instant(msgspec.Struct, frozen=True):
    """Now, as the engine tells it.

    `wall` is for people and for time to live. `awake` counts only seconds in which the machine
    was awake and the engine was watching: deadlines and hang timers are measured on it, so that
    neither a closed laptop lid nor a clock that is set fails a job. On a cluster it begins at the
    wall's time.
    """

    wall: datetime
    awake: float


class NewPod(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    role: str
    index: int
    attempt: int
    revision: int
    #: Its environment holds names instead of addresses.
    by_name: bool
    #: A complete Kubernetes pod; the local engine runs the same one.
    manifest: dict[str, Any]


class NewService(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    manifest: dict[str, Any]


class NewEnvironment(msgspec.Struct, frozen=True, kw_only=True):
    """The immutable ConfigMap that every pod of its revision waits for."""

    name: str
    revision: int
    data: dict[str, str]
    manifest: dict[str, Any]


class Event(msgspec.Struct, frozen=True, kw_only=True):
    type: Literal["Normal", "Warning"]
    reason: str
    message: str


class NewPodGroup(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    scheduler: str
    manifest: dict[str, Any]


class Regroup(msgspec.Struct, frozen=True, kw_only=True):
    """A PodGroup of ours that must ask for something else than it does."""

    name: str
    uid: str
    #: What changes in its spec; None takes a field away.
    spec: dict[str, Any]


class ChildRef(msgspec.Struct, frozen=True):
    kind: Literal["Pod", "Service", "ConfigMap", "PodGroup"]
    name: str
    uid: str = ""
    #: Without waiting for the node, which is lost.
    force: bool = False


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    #: The new status, or None when nothing about it changed.
    status: JobStatus | None = None
    #: Processes to end; record, exit code and log stay.
    stop: tuple[ChildRef, ...] = ()
    #: Children to remove altogether (a running pod is ended first).
    delete: tuple[ChildRef, ...] = ()
    environments: tuple[NewEnvironment, ...] = ()
    services: tuple[NewService, ...] = ()
    pods: tuple[NewPod, ...] = ()
    pod_groups: tuple[NewPodGroup, ...] = ()
    regroup: tuple[Regroup, ...] = ()
    #: Pods that wait for an environment which exists now.
    touch: tuple[str, ...] = ()
    events: tuple[Event, ...] = ()
    #: Seconds after which the brain wants to look again, whatever happens.
    look_again: float | None = None
    #: The job has outlived its time to live.
    delete_job: bool = False
