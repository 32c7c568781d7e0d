"""OpenPAI's v2 API of jobs: submit, list, show, stop, tag."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from regatta.server.openpai.jobs.config_texts import in_v2s_yaml
from regatta.server.openpai.jobs.frameworks import row_seen, row_to_change, story_seen
from regatta.server.openpai.jobs.job_answers import (
    detail,
    has_attempt,
    job_attempts,
    summary,
)
from regatta.server.openpai.jobs.job_bodies import STOP, read_execution_type, read_tag
from regatta.server.openpai.jobs.job_schemas import (
    EXECUTION,
    LIST_QUERY,
    MAP,
    TAG,
    YamlText,
    config_body,
    either,
    text_answers,
)
from regatta.server.openpai.jobs.job_shapes import (
    OpenPaiDetail,
    OpenPaiJobAttempt,
    OpenPaiSummary,
    Said,
    SaidOnly,
    SummariesWithCount,
)
from regatta.server.openpai.jobs.list_query import read_list_query
from regatta.server.openpai.jobs.submitting import submit_config
from regatta.server.openpai.jobs.telling.author_names import row_told
from regatta.server.openpai.jobs.telling.role_names import RoleNames, role_names
from regatta.server.openpai.openpai_schemas import list_of, openpai_answers
from regatta.server.openpai_errors import OpenPaiError, no_job
from regatta.server.records.job_rows import JobRow, document_of
from regatta.server.responses import answer, answer_many
from regatta.server.routes.answers_in_turn import LONG
from regatta.server.schemas import of
from regatta.server.team.gate import Asking
from regatta.server.team.team import Team

JOBS = "/api/v2/jobs"
JOB = JOBS + "/{framework}"


def v2_job_routes(team: Team) -> APIRouter:
    routes = APIRouter(tags=["OpenPAI jobs"])

    @routes.post(
        JOBS,
        status_code=202,
        responses=openpai_answers({202: of(Said)}),
        openapi_extra=config_body(),
    )
    async def submit(request: Request, caller: Asking) -> Response:
        """The body is a config: v2's YAML, or v1's JSON. Warnings are in `X-Warning`."""
        row, headers = await submit_config(team, caller, request, protocol=2)
        message = f"Update job {row.name} for user {row.username} successfully."
        return answer(Said(status=202, message=message), 202, headers)

    @routes.get(
        JOBS,
        responses=openpai_answers({200: either(list_of(OpenPaiSummary), of(SummariesWithCount))}),
        openapi_extra=LIST_QUERY,
        dependencies=LONG,
    )
    async def jobs(request: Request, caller: Asking) -> Response:
        """A bare list; with `withTotalCount=true` beside the number of all that match."""
        query = read_list_query(request.query_params)
        page = await team.desk.page(
            caller, query.wanted, query.order, offset=query.offset, limit=query.limit
        )
        names = await role_names(team.database, page.jobs)

        def shown() -> Any:
            summaries = _summaries(page.jobs, names)
            if query.with_total_count:
                return SummariesWithCount(total_count=page.total, data=summaries)
            return summaries

        return await answer_many(shown)

    @routes.get(JOB, responses=openpai_answers({200: of(OpenPaiDetail)}), dependencies=LONG)
    async def job(request: Request, caller: Asking, framework: str) -> Response:
        story = await story_seen(team, caller, framework, request)
        return await answer_many(partial(detail, story, story.row.attempt))

    @routes.get(
        JOB + "/attempts/{attempt}",
        responses=openpai_answers({200: of(OpenPaiDetail)}),
        dependencies=LONG,
    )
    async def attempt(request: Request, caller: Asking, framework: str, attempt: str) -> Response:
        story = await story_seen(team, caller, framework, request)
        number = attempt_number(attempt)
        if number is None or not has_attempt(story, number):
            raise no_attempt(framework, attempt)
        return await answer_many(partial(detail, story, number))

    @routes.get(
        JOB + "/config", response_class=YamlText, responses=text_answers({200: MAP}, YamlText)
    )
    async def config(request: Request, caller: Asking, framework: str) -> Response:
        """Always as v2 has it, secrets masked."""
        row = await row_seen(team, caller, framework, request)
        written = await config_of(team, row)
        return YamlText(await asyncio.to_thread(in_v2s_yaml, written, row.protocol))

    @routes.put(
        JOB + "/executionType",
        status_code=202,
        responses=openpai_answers({202: of(Said)}),
        openapi_extra=EXECUTION,
    )
    async def execution_type(request: Request, caller: Asking, framework: str) -> Response:
        """STOP ends a job. START changes nothing, as ever: what was stopped is submitted again."""
        row = await row_to_change(team, caller, framework, request)
        if await read_execution_type(request) == STOP:
            await team.desk.stop(row)
        message = f"Execute job {framework} successfully."
        return answer(Said(status=202, message=message), 202)

    @routes.get(JOB + "/ssh", status_code=404, responses=openpai_answers({}))
    async def ssh(request: Request, caller: Asking, framework: str) -> Response:
        """There is none, as in OpenPAI itself since it runs on Kubernetes."""
        raise no_ssh((await row_seen(team, caller, framework, request)).name)

    tagged = openpai_answers({200: of(Said)})

    @routes.put(JOB + "/tag", responses=tagged, openapi_extra=TAG)
    async def tag(request: Request, caller: Asking, framework: str) -> Response:
        row = await row_to_change(team, caller, framework, request, "tag")
        wanted = await read_tag(request)
        await team.desk.tag(row, wanted)
        message = f"Add tag {wanted} for job {framework} successfully."
        return answer(Said(status=200, message=message))

    @routes.delete(JOB + "/tag", responses=tagged, openapi_extra=TAG)
    async def untag(request: Request, caller: Asking, framework: str) -> Response:
        row = await row_to_change(team, caller, framework, request, "tag")
        wanted = await read_tag(request)
        if not await team.desk.untag(row, wanted):
            said = f"Tag {wanted} is not found for job {framework}."
            raise OpenPaiError(404, "NoTagError", said)
        message = f"Delete tag {wanted} from job {framework} successfully."
        return answer(Said(status=200, message=message))

    # The older API of attempts

    @routes.get(JOB + "/job-attempts/healthz", responses=openpai_answers({200: of(SaidOnly)}))
    async def healthz(caller: Asking, framework: str) -> Response:
        """Whether attempts are kept: they are, of whichever job."""
        return answer(SaidOnly(message="ok"))

    @routes.get(
        JOB + "/job-attempts",
        responses=openpai_answers({200: list_of(OpenPaiJobAttempt)}),
        dependencies=LONG,
    )
    async def attempts(request: Request, caller: Asking, framework: str) -> Response:
        """The latest first."""
        story = await story_seen(team, caller, framework, request)
        numbers = range(story.row.attempt, -1, -1)
        return await answer_many(partial(job_attempts, story, numbers))

    @routes.get(
        JOB + "/job-attempts/{attempt}",
        responses=openpai_answers({200: of(OpenPaiJobAttempt)}),
        dependencies=LONG,
    )
    async def one_attempt(
        request: Request, caller: Asking, framework: str, attempt: str
    ) -> Response:
        story = await story_seen(team, caller, framework, request)
        number = attempt_number(attempt)
        if number is None or not has_attempt(story, number):
            raise no_attempt(framework, attempt)
        return await answer_many(lambda: job_attempts(story, [number])[0])

    return routes


def _summaries(rows: Sequence[JobRow], names: RoleNames) -> tuple[OpenPaiSummary, ...]:
    told = (row_told(row, names[row.id]) if row.id in names else row for row in rows)
    return tuple(map(summary, told))


def attempt_number(text: str) -> int | None:
    plain = text.isascii() and text.isdigit() and len(text) < 10
    return int(text) if plain else None


def no_attempt(framework: str, attempt: str) -> OpenPaiError:
    return no_job(f"{framework}, attempt {attempt[:20]},")


def no_ssh(name: str) -> OpenPaiError:
    return OpenPaiError(404, "NoJobSshInfoError", f"SSH info of job {name} is not found.")


async def config_of(team: Team, row: JobRow) -> str:
    """As its author sent it, secrets masked: JSON. Raises OpenPaiError (404) for a PaddleJob."""
    written = await team.database.read(document_of, row.id, "config")
    if written is None:
        said = f"Config of job {row.name} is not found."
        raise OpenPaiError(404, "NoJobConfigError", said)
    return written
