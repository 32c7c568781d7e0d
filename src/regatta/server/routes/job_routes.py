"""Jobs: submit, read, change, remove. Each route is one call of the engine."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import AwareDatetime
from starlette.responses import Response

from regatta.api.job import Job, document
from regatta.engines.base import Accepted, Preview
from regatta.engines.inventory import PodView, Removal, RunView
from regatta.server.responses import answer, answer_job, answer_many, items
from regatta.server.routes.answers_in_turn import LONG
from regatta.server.routes.bodies import ScaleBody, SubmissionBody
from regatta.server.routes.engine_of import AskedEngine
from regatta.server.routes.query_times import NOT_A_NUMBER
from regatta.server.schemas import NOTHING, answers, items_of, of

JOBS = "/namespaces/{namespace}/jobs"
JOB = JOBS + "/{name}"

#: Of jobs and runs.
MOST = 10**9
Number = Annotated[int | None, Query(ge=0, le=MOST)]
EndedBefore = Annotated[AwareDatetime | None, NOT_A_NUMBER]
ONE = answers({200: of(Job)})


def job_routes() -> APIRouter:
    routes = APIRouter(tags=["jobs"])

    @routes.get("/jobs", responses=answers({200: items_of(Job)}), dependencies=LONG)
    async def list_jobs(
        engine: AskedEngine, namespace: str | None = None, finished: Number = None
    ) -> Response:
        """In order of submission. `finished`: of those that have ended only so many, the ones that
        ended last."""
        return await items(await engine.list(namespace, finished=finished))

    @routes.get("/runs", responses=answers({200: items_of(RunView)}), dependencies=LONG)
    async def runs(
        engine: AskedEngine,
        namespace: str | None = None,
        name: str | None = None,
        uid: str = "",
        limit: Number = None,
    ) -> Response:
        """Runs on record, the last submitted first: also those that were replaced, or deleted when
        their time to live was over."""
        return await items(await engine.history(namespace, name, uid=uid, limit=limit))

    @routes.post("/jobs", status_code=201, responses=answers({201: of(Accepted), 200: of(Preview)}))
    async def submit(
        engine: AskedEngine,
        body: SubmissionBody,
        dryRun: Literal["true", "stored", "false"] = "false",
    ) -> Response:
        """With `dryRun` nothing is created: `true` shows all that would be, `stored` what would be
        stored, as whoever stores it says."""
        submission, shell = body.read()
        if dryRun == "false":
            accepted = await engine.submit(submission, shell)
            more = {"warnings": accepted.warnings, "replaced": accepted.replaced}
            return answer({"job": document(accepted.job), **more}, 201)
        preview = await engine.preview(submission, shell, stored=dryRun == "stored")
        fields = ("warnings", "objects", "environment", "ports", "notes")
        shown = {field: getattr(preview, field) for field in fields}
        return await answer_many(lambda: {"job": document(preview.job), **shown})

    @routes.get(JOB, responses=ONE)
    async def get(engine: AskedEngine, namespace: str, name: str, uid: str = "") -> Response:
        """`uid`: that run of the job, whoever has its name now."""
        return answer_job(await engine.get(namespace, name, uid))

    @routes.delete(JOB, responses=answers({200: NOTHING}))
    async def delete(engine: AskedEngine, namespace: str, name: str) -> Response:
        await engine.delete(namespace, name)
        return answer({})

    @routes.delete(JOBS, responses=answers({200: of(Removal)}))
    async def delete_many(
        engine: AskedEngine,
        namespace: str,
        live: bool = False,
        endedBefore: EndedBefore = None,
    ) -> Response:
        """Finished jobs and every run that ended (`endedBefore`: before a time); with `live` every
        job. Some hundreds a request: send it again until `left` is 0."""
        return answer(await engine.delete_many(namespace, live=live, ended_before=endedBefore))

    @routes.post(JOB + "/stop", responses=ONE)
    async def stop(engine: AskedEngine, namespace: str, name: str) -> Response:
        return answer_job(await engine.stop(namespace, name))

    @routes.post(JOB + "/scale", responses=ONE)
    async def scale(engine: AskedEngine, namespace: str, name: str, body: ScaleBody) -> Response:
        return answer_job(await engine.scale(namespace, name, body.role, body.replicas))

    @routes.post(JOB + "/suspend", responses=ONE)
    async def suspend(engine: AskedEngine, namespace: str, name: str) -> Response:
        return answer_job(await engine.suspend(namespace, name))

    @routes.post(JOB + "/resume", responses=ONE)
    async def resume(engine: AskedEngine, namespace: str, name: str) -> Response:
        return answer_job(await engine.resume(namespace, name))

    @routes.get(JOB + "/pods", responses=answers({200: items_of(PodView)}), dependencies=LONG)
    async def pods(engine: AskedEngine, namespace: str, name: str, uid: str = "") -> Response:
        return await items(await engine.pods(namespace, name, uid))

    return routes
