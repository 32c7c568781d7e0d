"""OpenPAI's routes about jobs and what they run on, together: what a server of them declares."""

from __future__ import annotations

from fastapi import FastAPI

from regatta.server.openpai.cluster_routes import cluster_routes
from regatta.server.openpai.cluster_shapes import CLUSTER_SHAPES
from regatta.server.openpai.jobs.job_shapes import SHAPES
from regatta.server.openpai.jobs.task_routes import task_routes
from regatta.server.openpai.jobs.v1_job_routes import v1_job_routes
from regatta.server.openpai.jobs.v1_shapes import OLD_SHAPES
from regatta.server.openpai.jobs.v2_job_routes import v2_job_routes
from regatta.server.team.team import Team

DESCRIBED = (*SHAPES, *OLD_SHAPES, *CLUSTER_SHAPES)


def serve_jobs(app: FastAPI, team: Team) -> None:
    for routes in (v2_job_routes, task_routes, v1_job_routes, cluster_routes):
        app.include_router(routes(team))
