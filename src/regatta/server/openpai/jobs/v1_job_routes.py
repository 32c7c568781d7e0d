"""OpenPAI's first API of jobs. Unlike OpenPAI's, reading needs a token, too."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from urllib.parse import quote

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from regatta.server.accounts.account_rules import key_of
from regatta.server.accounts.caller import Caller
from regatta.server.accounts.visibility import EXECUTE
from regatta.server.openpai.jobs.config_texts import in_yaml
from regatta.server.openpai.jobs.frameworks import BETWEEN, seen, to_change
from regatta.server.openpai.jobs.job_answers import detail
from regatta.server.openpai.jobs.job_bodies import STOP, read_execution_type
from regatta.server.openpai.jobs.job_schemas import EXECUTION, MAP, YamlText, config_body
from regatta.server.openpai.jobs.job_shapes import SaidOnly
from regatta.server.openpai.jobs.list_query import LARGEST_LIMIT
from regatta.server.openpai.jobs.submitting import submit_config
from regatta.server.openpai.jobs.v1_shapes import OldDetail, OldSummary, old_detail, old_summary
from regatta.server.openpai.jobs.v2_job_routes import config_of, no_ssh
from regatta.server.openpai.openpai_schemas import list_of, openpai_answers
from regatta.server.openpai_errors import forbidden
from regatta.server.records.job_lists import NEWEST_FIRST, JobFilter
from regatta.server.records.job_rows import JobRow
from regatta.server.records.job_story import story_of
from regatta.server.responses import answer, answer_many
from regatta.server.routes.answers_in_turn import LONG
from regatta.server.schemas import of
from regatta.server.team.gate import Asking, gateway_of
from regatta.server.team.team import Team

#: A job's path has its owner in it, or in its name, or means one's own.
THEIRS, ALL = "/api/v1/user/{username}/jobs", "/api/v1/jobs"
#: OpenPAI's web pages asked here.
ASKED_BY_PAGES = "/api/v2/user/{username}/jobs"


def v1_job_routes(team: Team) -> APIRouter:
    routes = APIRouter(tags=["OpenPAI jobs, v1"])
    made = {"status_code": 201, "responses": openpai_answers({201: of(OldDetail)})}
    done = {"status_code": 202, "responses": openpai_answers({202: of(SaidOnly)})}

    @routes.get(ALL, responses=openpai_answers({200: list_of(OldSummary)}), dependencies=LONG)
    async def jobs(caller: Asking, username: str | None = None) -> Response:
        return await _listed(team, caller, username or None)

    @routes.post(ALL, openapi_extra=config_body(), **made)  # type: ignore[arg-type]
    async def submit(request: Request, caller: Asking) -> Response:
        return await _submitted(team, caller, request, caller.name, None)

    for path in (THEIRS, ASKED_BY_PAGES):

        @routes.get(path, responses=openpai_answers({200: list_of(OldSummary)}), dependencies=LONG)
        async def theirs(caller: Asking, username: str) -> Response:
            return await _listed(team, caller, username)

        @routes.post(path, openapi_extra=config_body(), **made)  # type: ignore[arg-type]
        async def submit_as(request: Request, caller: Asking, username: str) -> Response:
            return await _submitted(team, caller, request, username, None)

        @routes.put(path + "/{name}", openapi_extra=config_body(), **made)  # type: ignore[arg-type]
        async def submit_named(
            request: Request, caller: Asking, username: str, name: str
        ) -> Response:
            return await _submitted(team, caller, request, username, name)

    @routes.put(ALL + "/{name}", openapi_extra=config_body(), **made)  # type: ignore[arg-type]
    async def submit_own(request: Request, caller: Asking, name: str) -> Response:
        user, plain = _whose(caller, None, name)
        return await _submitted(team, caller, request, user, plain)

    for base, where in ((THEIRS, "theirs"), (ASKED_BY_PAGES, "pages"), (ALL, "all")):
        _one_job(routes, team, base + "/{name}", where, done)
    return routes


def _one_job(routes: APIRouter, team: Team, path: str, where: str, done: dict[str, object]) -> None:
    @routes.get(
        path,
        name=f"v1_job_{where}",
        responses=openpai_answers({200: of(OldDetail)}),
        dependencies=LONG,
    )
    async def job(
        request: Request, caller: Asking, name: str, username: str | None = None
    ) -> Response:
        row = await _seen(team, caller, request, username, name)
        return await _detail(team, row)

    @routes.delete(path, **done)  # type: ignore[arg-type]
    async def delete(
        request: Request, caller: Asking, name: str, username: str | None = None
    ) -> Response:
        row = await _to_change(team, caller, request, username, name, "delete")
        await team.desk.delete(row)
        return answer(SaidOnly(message=f"deleted job {row.name} successfully"), 202)

    @routes.get(path + "/config", responses=_CONFIG)
    async def config(
        request: Request, caller: Asking, name: str, username: str | None = None
    ) -> Response:
        """As it was sent, secrets masked: JSON, or YAML where `Accept` says so."""
        row = await _seen(team, caller, request, username, name)
        written = await config_of(team, row)
        if "yaml" in request.headers.get("accept", "").lower():
            return YamlText(await asyncio.to_thread(in_yaml, written))
        return Response(written, media_type="application/json")

    @routes.get(path + "/ssh", status_code=404, responses=openpai_answers({}))
    async def ssh(
        request: Request, caller: Asking, name: str, username: str | None = None
    ) -> Response:
        raise no_ssh((await _seen(team, caller, request, username, name)).name)

    @routes.put(path + "/executionType", openapi_extra=EXECUTION, **done)  # type: ignore[arg-type]
    async def execution_type(
        request: Request, caller: Asking, name: str, username: str | None = None
    ) -> Response:
        row = await _to_change(team, caller, request, username, name)
        if await read_execution_type(request) == STOP:
            await team.desk.stop(row)
        return answer(SaidOnly(message=f"execute job {row.name} successfully"), 202)


def _config_answers() -> dict[int | str, dict[str, object]]:
    declared = openpai_answers({200: MAP})
    declared[200]["content"][str(YamlText.media_type)] = {"schema": MAP}
    return declared


_CONFIG = _config_answers()


def _whose(caller: Caller, username: str | None, name: str) -> tuple[str, str]:
    if username is not None:
        return username, name
    user, sign, rest = name.partition(BETWEEN)
    return (user, rest) if sign else (caller.name, name)


async def _seen(
    team: Team, caller: Caller, request: Request, username: str | None, name: str
) -> JobRow:
    user, plain = _whose(caller, username, name)
    return await seen(team, caller, request, user, plain)


async def _to_change(
    team: Team,
    caller: Caller,
    request: Request,
    username: str | None,
    name: str,
    verb: str = EXECUTE,
) -> JobRow:
    user, plain = _whose(caller, username, name)
    return await to_change(team, caller, request, user, plain, verb)


async def _listed(team: Team, caller: Caller, username: str | None) -> Response:
    wanted = JobFilter(usernames=None if username is None else (username,))
    page = await team.desk.page(caller, wanted, NEWEST_FIRST, limit=LARGEST_LIMIT)
    return await answer_many(lambda: tuple(map(old_summary, page.jobs)))


async def _submitted(
    team: Team, caller: Caller, request: Request, username: str, name: str | None
) -> Response:
    if key_of(username) != key_of(caller.name):
        raise forbidden(
            f"User {caller.name} is not allowed to submit a job as {username[:64]}; submit it as "
            f"{caller.name}."
        )
    row, headers = await submit_config(team, caller, request, protocol=1, name=name)
    place = f"{gateway_of(request)}/api/v1/user/{quote(row.username)}/jobs/{quote(row.name)}"
    return await _detail(team, row, 201, {"Location": place, **headers})


async def _detail(
    team: Team, row: JobRow, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    story = await team.database.read(story_of, row.id)
    shown = partial(detail, story, story.row.attempt)
    return await answer_many(lambda: old_detail(story.row, shown()), status, headers)
