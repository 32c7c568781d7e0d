"""Rows of the store as typed values. Nothing here reads or writes."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from regatta.api.job import Job
from regatta.controller.world import PodPhase, port_block
from regatta.engines.base import RunAs, Shell


class Context(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What of a submission's shell outlives it: where and how its processes run."""

    directory: str = "/"
    shell: dict[str, str] = {}
    python: str | None = None
    volumes: dict[str, str] = {}
    runtime: str = "none"
    run_as: RunAs | None = None
    folders: tuple[str, ...] | None = None
    runs: str = ""
    library: str = ""
    images: dict[str, str] | None = None
    given: dict[str, str] = {}

    @classmethod
    def of(cls, shell: Shell) -> Context:
        return cls(
            directory=shell.directory or "/",
            shell=shell.environment,
            python=shell.python,
            volumes=shell.volumes,
            runtime=shell.runtime,
            run_as=shell.run_as,
            folders=shell.folders,
            runs=shell.runs,
            library=shell.library,
            images=shell.images,
            given=shell.given,
        )


class JobRecord(msgspec.Struct, frozen=True, kw_only=True):
    job: Job
    context: Context
    #: The other documents of the job's file, as JSON.
    companions: bytes = b"null"
    superseded: bool = False
    queued: int = 0
    admitted: int | None = None
    #: When it last asked to be larger; all three count in one rising sequence.
    asked: int = 0
    #: Replicas per role that the scheduler admitted; None while it has not.
    shape: dict[str, int] | None = None
    waiting: str = ""

    @property
    def uid(self) -> str:
        return self.job.uid

    @property
    def in_line_since(self) -> int:
        """Growth of a job that has been admitted waits like a job that came then."""
        return self.queued if self.shape is None else max(self.queued, self.asked)


class PodRecord(msgspec.Struct, frozen=True, kw_only=True):
    uid: str
    job_uid: str
    name: str
    role: str
    index: int
    attempt: int
    revision: int
    manifest: dict[str, Any]
    created_at: datetime
    #: 0 until the pod is meant to start.
    run: int = 0
    bound: bool = False
    address: str = ""
    port_base: int = 0
    gpus: tuple[str, ...] = ()
    phase: PodPhase = PodPhase.PENDING
    stopping: bool = False
    deleting: bool = False
    gone: bool = False
    exit_code: int | None = None
    #: How it ended; before that, why nothing of it runs just now.
    reason: str = ""
    message: str = ""
    disruption: str = ""
    restarts: int = 0
    started_at: datetime | None = None
    finished_at: datetime | None = None

    @property
    def over(self) -> bool:
        return self.finished_at is not None

    @property
    def alive(self) -> bool:
        """A process of it may exist."""
        return self.run > 0 and not self.over

    @property
    def ports(self) -> tuple[int, int] | None:
        if not self.port_base:
            return None
        return port_block(self.port_base)


class Reservation(msgspec.Struct, frozen=True):
    """A contiguous run of `count` addresses and of as many port blocks, by their numbers."""

    first_address: int
    first_block: int
    count: int
