"""Where an account's jobs stand, made ready before one is handed in: a work folder and a Unix user
on a machine, a namespace on a cluster."""

from __future__ import annotations

from typing import Protocol

import msgspec

from regatta.api.problems import Problem
from regatta.engines.base import Shell
from regatta.server.accounts.users import User


class Ground(msgspec.Struct, frozen=True, kw_only=True):
    """For one submission."""

    #: None where the engine takes none.
    shell: Shell | None = None
    warnings: tuple[Problem, ...] = ()


class Grounds(Protocol):
    async def prepare(
        self, user: User, namespace: str, job_id: str, images: tuple[str, ...]
    ) -> Ground:
        """`images`: those that the job names. Raises RegattaError."""
        ...

    async def clear(self, user: str, job_id: str) -> None:
        """What was made for this job alone: the job is no more."""
        ...


class MakesNamespaces(Protocol):
    async def make_namespace(self, namespace: str) -> None: ...


class ClusterGrounds:
    def __init__(self, engine: MakesNamespaces) -> None:
        self._engine = engine

    async def prepare(
        self, user: User, namespace: str, job_id: str, images: tuple[str, ...]
    ) -> Ground:
        await self._engine.make_namespace(namespace)
        return Ground()

    async def clear(self, user: str, job_id: str) -> None:
        """A namespace stays for the account's next job."""
