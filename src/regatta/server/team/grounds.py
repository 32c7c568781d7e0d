"""Where an account's jobs stand, made ready before one is handed in: a work folder and a Unix user
on a machine, a namespace on a cluster."""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol

from regatta.engines.base import Shell
from regatta.server.accounts.users import User
from regatta.server.team.isolating.isolation import Isolation

log = logging.getLogger(__name__)


class Grounds(Protocol):
    @property
    def accounts(self) -> bool:
        """Whether jobs run as accounts of this machine, one for each user."""
        ...

    async def prepare(
        self, user: User, namespace: str, job_id: str, own_output: str
    ) -> Shell | None:
        """How a submission of this user's runs; None where the engine takes no shell.
        `own_output`: the folder it writes in that has to be the account's own, or nothing. Raises
        RegattaError."""
        ...

    async def clear(self, job_id: str) -> None:
        """What was made for this job alone: the job is no more."""
        ...

    async def clear_previews(self) -> None:
        """Of previews that were cut off by a server's death."""
        ...


class MachineGrounds:
    def __init__(self, isolation: Isolation) -> None:
        self._isolation = isolation

    @property
    def accounts(self) -> bool:
        return self._isolation.kind == "users"

    async def prepare(
        self, user: User, namespace: str, job_id: str, own_output: str
    ) -> Shell | None:
        return await self._isolation.shell_for(user, job_id, own_output)

    async def clear(self, job_id: str) -> None:
        failure = await asyncio.to_thread(self._isolation.forget, job_id)
        if failure is not None:
            log.warning("the work folder of a job that is gone stays: %s", failure)

    async def clear_previews(self) -> None:
        for failure in await asyncio.to_thread(self._isolation.forget_previews):
            log.warning("the work folder of a preview stays: %s", failure)


class MakesNamespaces(Protocol):
    async def make_namespace(self, namespace: str) -> None: ...


class ClusterGrounds:
    def __init__(self, engine: MakesNamespaces) -> None:
        self._engine = engine

    @property
    def accounts(self) -> bool:
        return False

    async def prepare(
        self, user: User, namespace: str, job_id: str, own_output: str
    ) -> Shell | None:
        await self._engine.make_namespace(namespace)
        return None

    async def clear(self, job_id: str) -> None:
        """A namespace stays for the account's next job."""

    async def clear_previews(self) -> None:
        """Nothing was made for one."""
