"""What OpenPAI's v2 API tells of a job's tasks: events, history and logs."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from regatta.api.errors import JobNotFound, NoRecord
from regatta.engines.base import LogQuery
from regatta.server.openpai.jobs.event_answers import events_shown
from regatta.server.openpai.jobs.frameworks import row_seen, story_seen
from regatta.server.openpai.jobs.job_answers import has_attempt
from regatta.server.openpai.jobs.job_schemas import TEXT, PlainText, text_answers
from regatta.server.openpai.jobs.job_shapes import (
    EventsWithCount,
    LogLocation,
    LogLocations,
    TaskHistory,
)
from regatta.server.openpai.jobs.log_links import (
    GOOD_FOR_MILLIS,
    LogLink,
    no_log,
    read_link,
    sign,
)
from regatta.server.openpai.jobs.log_texts import STREAMS, TaskLog
from regatta.server.openpai.jobs.task_answers import history_of, lives_of
from regatta.server.openpai.jobs.telling.role_plans import RolePlan, plan_named
from regatta.server.openpai.jobs.v2_job_routes import JOB, attempt_number
from regatta.server.openpai.openpai_schemas import openpai_answers
from regatta.server.openpai_errors import OpenPaiError, invalid_parameters
from regatta.server.origins import public_url
from regatta.server.records.job_rows import ReplicaRow, job_by_id
from regatta.server.records.job_story import JobStory, told_of
from regatta.server.responses import answer, answer_many
from regatta.server.routes.answers_in_turn import LONG
from regatta.server.schemas import of
from regatta.server.team.gate import SIGNED_PREFIX, Asking, admit, gateway_of
from regatta.server.team.team import Team

TASK = JOB + "/attempts/{attempt}/taskRoles/{role}/taskIndex/{index}/attempts"

EVENT_TYPES = ("", "Normal", "Warning")
#: Described alone: what is none of them is told which there are.
EventType = Annotated[str, Query(json_schema_extra={"enum": list(EVENT_TYPES)})]


def task_routes(team: Team) -> APIRouter:
    routes = APIRouter(tags=["OpenPAI jobs"])

    @routes.get(
        JOB + "/events", responses=openpai_answers({200: of(EventsWithCount)}), dependencies=LONG
    )
    async def events(
        request: Request, caller: Asking, framework: str, type: EventType = ""
    ) -> Response:
        """The newest first; while the job waits, the first says why."""
        row = await row_seen(team, caller, framework, request)
        if type not in EVENT_TYPES:
            raise invalid_parameters(f"type is {type[:40]!r}; write Normal or Warning")
        kind = type or None
        story, told = await team.database.read(told_of, row.id, kind)
        return await answer_many(partial(events_shown, story, told, kind))

    @routes.get(TASK, responses=openpai_answers({200: of(TaskHistory)}), dependencies=LONG)
    async def history(
        request: Request, caller: Asking, framework: str, attempt: str, role: str, index: str
    ) -> Response:
        story = await story_seen(team, caller, framework, request)
        plan, place, number = _task(story, attempt, role, index)
        return await answer_many(partial(history_of, story, plan, place, number))

    @routes.get(TASK + "/{life}/logs", responses=openpai_answers({200: of(LogLocations)}))
    async def logs(
        request: Request,
        caller: Asking,
        framework: str,
        attempt: str,
        role: str,
        index: str,
        life: str,
        tailMode: str = "",
    ) -> Response:
        """Links that are good for two minutes. `tailMode` or `tail-mode`: to the last 16 KiB."""
        story = await story_seen(team, caller, framework, request)
        replica = _life(story, *_task(story, attempt, role, index), life)
        if not await _has_log(team, story, replica):
            raise no_log()
        tail = "true" in (tailMode.lower(), request.query_params.get("tail-mode", "").lower())
        where = _our_address(team, request) + gateway_of(request)
        ends = team.now() + GOOD_FOR_MILLIS
        places = [
            LogLink(
                job=story.row.id,
                role=replica.role,
                index=replica.replica_index,
                attempt=replica.attempt,
                stream=stream,
                tail=tail,
                ends=ends,
            )
            for stream in STREAMS
        ]
        return answer(
            LogLocations(
                locations=tuple(
                    LogLocation(
                        name=link.stream,
                        uri=f"{where}{SIGNED_PREFIX}{sign(link, team.link_key)}",
                    )
                    for link in places
                )
            )
        )

    @routes.get(
        SIGNED_PREFIX + "{signed}",
        response_class=PlainText,
        responses=text_answers({200: TEXT, 206: TEXT}, PlainText),
    )
    async def log(request: Request, signed: str) -> Response:
        """What a task printed: 200 with all of it, 206 with its end."""
        link = read_link(signed, team.link_key, team.now())
        admit(request)
        try:
            row = await team.database.read(job_by_id, link.job)
        except NoRecord:
            raise no_log("the job was deleted") from None
        query = LogQuery(
            uid=row.engine_uid or "", role=link.role, index=link.index, attempt=link.attempt
        )
        text = TaskLog(team.engine, row.namespace, row.engine_name, query, link.stream)
        headers = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
        if link.tail:
            return PlainText(await text.tail(), 206, headers)
        return StreamingResponse(await text.whole(), 200, headers, PlainText.media_type)

    return routes


def _task(story: JobStory, attempt: str, role: str, index: str) -> tuple[RolePlan, int, int]:
    """Raises OpenPaiError (404)."""
    plan, place, number = plan_named(story, role), attempt_number(index), attempt_number(attempt)
    no_task = OpenPaiError(
        404,
        "NoTaskError",
        f"Task {role[:255]}[{index[:20]}] of attempt {attempt[:20]} is not found.",
    )
    if plan is None or place is None or number is None:
        raise no_task
    if place >= plan.tasks or not has_attempt(story, number):
        raise no_task
    return plan, place, number


def _life(story: JobStory, plan: RolePlan, index: int, attempt: int, life: str) -> ReplicaRow:
    lives, number = lives_of(story, plan, index, attempt), attempt_number(life)
    if number is None or number >= len(lives):
        raise no_log()
    return lives[number].replica


async def _has_log(team: Team, story: JobStory, replica: ReplicaRow) -> bool:
    """Whether it has begun to print, and the engine still has that: a cluster has nothing once the
    pod is gone."""
    row = story.row
    if row.engine_uid is None or replica.started_at is None:
        return False
    try:
        pods = await team.engine.pods(row.namespace, row.engine_name, row.engine_uid)
    except JobNotFound:
        return False
    return any(pod.uid == replica.uid for pod in pods)


def _our_address(team: Team, request: Request) -> str:
    """As the asker knows us: behind a proxy, the settings say how."""
    host = request.headers.get("host", "")
    return public_url(host, team.settings.public_urls) or f"{request.url.scheme}://{host}"
