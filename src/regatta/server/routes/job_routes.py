"""Jobs: submit, read, change, remove. Each route is one call of the engine."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from regatta.api.job import document
from regatta.engines.base import Engine
from regatta.server.responses import answer, answer_job, items
from regatta.server.routes.bodies import ScaleBody, SubmissionBody

JOB = "/namespaces/{namespace}/jobs/{name}"


def job_routes(engine: Engine) -> APIRouter:
    # Plain functions: FastAPI runs them in its thread pool, as the engine's calls may block.
    routes = APIRouter(tags=["jobs"])

    @routes.get("/jobs")
    def list_jobs(namespace: str | None = None) -> Response:
        return items(list(engine.list(namespace)))

    @routes.post("/jobs", status_code=201)
    def submit(body: SubmissionBody, dryRun: bool = False) -> Response:
        if dryRun:
            preview = engine.preview(body.submission())
            fields = ("warnings", "objects", "environment", "ports", "notes")
            shown = {field: getattr(preview, field) for field in fields}
            return answer({"job": document(preview.job), **shown})
        accepted = engine.submit(body.submission())
        shown = {"warnings": accepted.warnings, "replaced": accepted.replaced}
        return answer({"job": document(accepted.job), **shown}, 201)

    @routes.get(JOB)
    def get(namespace: str, name: str) -> Response:
        return answer_job(engine.get(namespace, name))

    @routes.delete(JOB)
    def delete(namespace: str, name: str) -> Response:
        engine.delete(namespace, name)
        return answer({})

    @routes.post(JOB + "/stop")
    def stop(namespace: str, name: str) -> Response:
        return answer_job(engine.stop(namespace, name))

    @routes.post(JOB + "/scale")
    def scale(namespace: str, name: str, body: ScaleBody) -> Response:
        return answer_job(engine.scale(namespace, name, body.role, body.replicas))

    @routes.post(JOB + "/suspend")
    def suspend(namespace: str, name: str) -> Response:
        return answer_job(engine.suspend(namespace, name))

    @routes.post(JOB + "/resume")
    def resume(namespace: str, name: str) -> Response:
        return answer_job(engine.resume(namespace, name))

    @routes.get(JOB + "/pods")
    def pods(namespace: str, name: str) -> Response:
        return items(engine.pods(namespace, name))

    return routes
