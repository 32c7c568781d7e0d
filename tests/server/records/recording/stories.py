"""A real engine on this machine and a recorder beside it, which can be down for a while."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

from regatta.api.errors import NoRecord
from regatta.api.job import Job
from regatta.engines.base import Engine
from regatta.server.records.job_rows import (
    AttemptRow,
    JobRow,
    ReplicaRow,
    attempts_of,
    job_of,
    replicas_of,
)
from regatta.server.records.recording.recorder import Recorder
from regatta.server.records.team_database import Database
from tests.engines.local.jobs import a_submission

T = TypeVar("T")
PATIENCE = 60.0


async def eventually(look: Callable[[], Awaitable[T | None]], what: str) -> T:
    deadline = asyncio.get_running_loop().time() + PATIENCE
    while asyncio.get_running_loop().time() < deadline:
        if found := await look():
            return found
        await asyncio.sleep(0.02)
    raise AssertionError(f"{what} did not happen in {PATIENCE:.0f} s")


@asynccontextmanager
async def recording(engine: Engine, database: Database, **more: Any) -> AsyncIterator[Recorder]:
    recorder = Recorder(engine, database, **more)
    running = asyncio.create_task(recorder.run())
    try:
        yield recorder
        assert not running.done(), running.exception()
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


async def submit(engine: Engine, document: dict[str, Any]) -> Job:
    return (await engine.submit(*a_submission(document))).job


class Records:
    """What is on record of a job, by the name that it has or had."""

    def __init__(self, database: Database, username: str = "") -> None:
        self._database, self._username = database, username

    async def of(self, name: str) -> JobRow | None:
        try:
            return await self._database.read(job_of, self._username, name)
        except NoRecord:
            return None

    async def replicas(self, name: str) -> list[ReplicaRow]:
        row = await self.of(name)
        return [] if row is None else await self._database.read(replicas_of, row.id)

    async def attempts(self, name: str) -> list[AttemptRow]:
        row = await self.of(name)
        return [] if row is None else await self._database.read(attempts_of, row.id)

    async def shows(self, name: str, *states: str) -> JobRow:
        async def look() -> JobRow | None:
            row = await self.of(name)
            return row if row is not None and row.state in states else None

        try:
            return await eventually(look, f"{name} on record as {' or '.join(states)}")
        except AssertionError as error:
            raise AssertionError(f"{error}: {await self.of(name)}") from None

    async def settles(self, name: str, *states: str) -> JobRow:
        """And all its replicas have ended."""
        await self.shows(name, *states)

        async def look() -> JobRow | None:
            found = await self.replicas(name)
            over = found and all(replica.phase in ("Succeeded", "Failed") for replica in found)
            return await self.of(name) if over else None

        return await eventually(look, f"the end of {name}'s replicas on record")
