"""`user~job`: how OpenPAI's paths name a job, and the one way from there to its record."""

from __future__ import annotations

from starlette.requests import Request

from regatta.server.accounts.caller import Caller
from regatta.server.accounts.visibility import EXECUTE
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


async def seen(team: Team, caller: Caller, request: Request, user: str, name: str) -> JobRow:
    """The audit is told of the job as it is on record, however `user` was spelt."""
    request.state.job = f"{user}{BETWEEN}{name}"
    row = await team.desk.find(caller, user, name)
    request.state.job = f"{row.username}{BETWEEN}{row.name}"
    return row


async def to_change(
    team: Team, caller: Caller, request: Request, user: str, name: str, verb: str = EXECUTE
) -> JobRow:
    """`verb`: what is wanted of it, for whoever may not."""
    row = await seen(team, caller, request, user, name)
    await team.desk.require_changeable(caller, row, f"{user}{BETWEEN}{name}", verb)
    return row


async def row_seen(team: Team, caller: Caller, framework: str, request: Request) -> JobRow:
    return await seen(team, caller, request, *split(framework, request))


async def row_to_change(
    team: Team, caller: Caller, framework: str, request: Request, verb: str = EXECUTE
) -> JobRow:
    user, name = split(framework, request)
    return await to_change(team, caller, request, user, name, verb)


async def story_seen(team: Team, caller: Caller, framework: str, request: Request) -> JobStory:
    row = await row_seen(team, caller, framework, request)
    return await team.database.read(story_of, row.id)
