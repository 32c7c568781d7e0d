"""What was left half done: by the server before this one, or by this one while the database or the
engine was away. It is found on record and finished, with whoever answers for it.

A submit whose row says `accepting` has made a job, or it has not: the engine knows. A job that was
to be stopped, as its row says, and of which the engine knows nothing, is stopped; one that was to
be deleted is deleted.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

from regatta.api.errors import JobNotFound, NotPossible, RecordsAway, RegattaError
from regatta.engines.base import Engine
from regatta.server.records.job_rows import JobRow
from regatta.server.records.job_writes import deletes_on_record, stops_on_record
from regatta.server.records.submits import ACCEPTING, Unfinished, settle, unfinished
from regatta.server.records.team_database import Database
from regatta.server.team.deletes import Deleting
from regatta.server.team.submitting.turns import Turns

#: Seconds before another try: first, longest.
RETRY, LONGEST_RETRY = 0.5, 30.0
#: After a no, unless there is something new.
REFUSED_RETRY = 300.0

log = logging.getLogger(__name__)


class LooseEnds:
    def __init__(
        self,
        database: Database,
        engine: Engine,
        turns: Turns,
        clear: Callable[[str], Awaitable[None]],
        deleting: Deleting,
    ) -> None:
        """`clear`: removes what was made for a job that did not come to be, by its id."""
        self._database, self._engine, self._turns = database, engine, turns
        self._clear, self._deleting = clear, deleting
        self._some = asyncio.Event()

    def left(self) -> None:
        """Something was, just now."""
        self._some.set()

    async def settle_all(self) -> None:
        """Raises what the engine and the database raise, and then that is still to be done: with
        all that comes after it, where they cannot be asked at all."""
        refused: list[RegattaError] = []
        # Each kind is read when the one before it is done: what a submit made may be to be stopped.
        for submit in await self._database.read(unfinished):
            await _try(self._submitted(submit), refused)
        for row in await self._database.read(stops_on_record):
            await _try(self._stop(row), refused)
        for row in await self._database.read(deletes_on_record):
            await _try(self._delete(row), refused)
        await self._deleting.forget_owed()
        if refused:
            raise refused[0]

    async def settle_at_a_start(self) -> None:
        """What the engine does not let us finish waits: for that nobody is kept out."""
        try:
            await self.settle_all()
        except RecordsAway:
            raise
        except RegattaError as trouble:
            log.warning("what the server before this one left half done still is: %s", trouble)
            self.left()

    async def _submitted(self, submit: Unfinished) -> None:
        async with self._turns.of(submit.id):
            await self.settle(submit)

    async def settle(self, submit: Unfinished) -> None:
        """The caller has its turn."""
        if await settle(self._database, self._engine, submit):
            log.warning(
                "the submit of %s~%s was cut off and made no job", submit.username, submit.name
            )
            await self._clear(submit.id)

    async def _stop(self, row: JobRow) -> None:
        async with self._turns.of((row.username, row.name)):
            with suppress(JobNotFound, NotPossible):  # it has ended; the recorder tells how
                job = await self._engine.get(row.namespace, row.engine_name)
                policy = job.spec.run_policy
                if job.uid == row.engine_uid and not (job.finished or policy.abort):
                    await self._engine.stop(row.namespace, row.engine_name)

    async def _delete(self, row: JobRow) -> None:
        async with self._turns.of((row.username, row.name)):
            # Somebody else may have done it by now, or be at it; and what is on its way to the
            # engine would be deleted before it is there.
            left = {other.id: other for other in await self._database.read(deletes_on_record)}
            now = left.get(row.id)
            if now is None or now.id in self._deleting.underway or now.submit_state == ACCEPTING:
                return
            if await self._deleting.go_on(now):
                log.warning("the delete of %s~%s was cut off; it is done", now.username, now.name)

    async def tie_up(self) -> None:
        """Until cancelled: whatever is left, once it can be."""
        pause = RETRY
        while True:
            await self._some.wait()
            self._some.clear()
            try:
                await self.settle_all()
            except RegattaError as trouble:
                log.warning("what was left half done still is: %s", trouble)
                if trouble.status < 500:  # asked again at once it would say no again
                    with suppress(TimeoutError):
                        async with asyncio.timeout(REFUSED_RETRY):
                            await self._some.wait()
                else:
                    await asyncio.sleep(pause)
                    pause = min(2 * pause, LONGEST_RETRY)
                self._some.set()
            else:
                pause = RETRY


async def _try(end: Awaitable[None], refused: list[RegattaError]) -> None:
    """A no to one says nothing of the others."""
    try:
        await end
    except RegattaError as why:
        if why.status >= 500:
            raise
        refused.append(why)
