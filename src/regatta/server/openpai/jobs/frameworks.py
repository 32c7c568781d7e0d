"""`user~job`: how OpenPAI's paths name a job, and the one way from there to its record."""

from __future__ import annotations

from starlette.requests import Request

from regatta.server.accounts.caller import Caller
from regatta.server.openpai_errors import no_job
from regatta.server.records.job_rows import JobRow
from regatta.server.records.job_story import JobStory, story_of
from regatta.server.team.team import Team

BETWEEN = "~"


def split(framework: str, request: Request) -> tuple[str, str]:
    """Owner and name; a job's name cannot hold the sign. Told to the audit. Raises OpenPaiError
    (404)."""
    request.state.job = framework
    user, sign, name = framework.partition(BETWEEN)
    if not sign or not name or BETWEEN in name:
        raise no_job(framework)
    return user, name


async def row_seen(team: Team, caller: Caller, framework: str, request: Request) -> JobRow:
    user, name = split(framework, request)
    return await team.desk.find(caller, user, name)


async def row_to_change(team: Team, caller: Caller, framework: str, request: Request) -> JobRow:
    user, name = split(framework, request)
    return await team.desk.find_to_change(caller, user, name)


async def story_seen(team: Team, caller: Caller, framework: str, request: Request) -> JobStory:
    row = await row_seen(team, caller, framework, request)
    return await team.database.read(story_of, row.id)
