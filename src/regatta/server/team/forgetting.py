"""What a team's server does once in a while: it forgets records, tokens and audit entries whose
time is over, with what was made for the jobs they were of."""

from __future__ import annotations

import asyncio
import logging

from regatta.api.errors import RegattaError
from regatta.server.accounts.audit import forget_audit
from regatta.server.accounts.tokens import purge
from regatta.server.records.records_retention import DAY, forget_old
from regatta.server.team.team import Team

EVERY_SECONDS = 3600.0

log = logging.getLogger(__name__)


async def keep_house(team: Team, every: float = EVERY_SECONDS) -> None:
    """Until cancelled."""
    while True:
        try:
            await clean(team)
        except RegattaError as trouble:  # the database is away: next time
            log.warning("%s", trouble)
        await asyncio.sleep(every)


async def clean(team: Team) -> None:
    settings, now = team.settings, team.now()
    while gone := await team.database.run(forget_old, settings.keep_days, now):
        for job_id in gone:
            await team.desk.clear(job_id)
    await team.database.run(purge, now)
    if settings.audit_days:
        await team.database.run(forget_audit, now - round(settings.audit_days * DAY))
