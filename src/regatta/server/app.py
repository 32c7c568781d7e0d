"""The application: routes in front of an engine, and the doorkeeper in front of the routes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Any

from fastapi import FastAPI
from starlette.responses import Response

from regatta import __version__
from regatta.engines.base import Engine
from regatta.server import responses, schemas
from regatta.server.auth import OPEN_PATHS, Doorkeeper
from regatta.server.bounds.body_limit import BodyLimit
from regatta.server.routes.engine_of import serve_engine
from regatta.server.routes.job_routes import job_routes
from regatta.server.routes.known_queries import KNOWN_QUERIES
from regatta.server.routes.server_routes import server_routes
from regatta.server.routes.stream_routes import stream_routes

API = "/regatta/v1"


def make_app(
    engine: Engine,
    opens: Callable[[str], bool],
    *,
    describe: Callable[[], dict[str, Any]],
    stop: Callable[[int], None],
    hosts: tuple[str, ...] = (),
    any_address: bool = False,
) -> FastAPI:
    """`opens` says whether a token is the right one. `describe` and `stop` belong to the process
    that serves: see `regatta.server.run`.

    `hosts` and `any_address` say what else than loopback a Host header may name."""
    leaving = asyncio.Event()

    def leave(code: int = 0) -> None:
        leaving.set()
        stop(code)

    app = FastAPI(
        title="Regatta",
        version=__version__,
        openapi_url=f"{API}/openapi.json",
        # The pages that FastAPI offers load their scripts from the internet.
        docs_url=None,
        redoc_url=None,
    )
    app.state.leave = leave

    @app.get("/healthz", tags=["server"], responses=schemas.answers({200: schemas.HEALTH}))
    async def health() -> Response:
        return responses.answer({"status": "ok", "version": __version__, "pid": os.getpid()})

    serve_engine(app, lambda _: engine)
    routers = (job_routes(), stream_routes(leaving), server_routes(describe, leave))
    for routes in routers:
        app.include_router(routes, prefix=API, dependencies=KNOWN_QUERIES)
    responses.install(app)
    schemas.install(app, lambda _, path: path in OPEN_PATHS)
    app.add_middleware(BodyLimit)
    app.add_middleware(Doorkeeper, opens=opens, hosts=hosts, any_address=any_address)
    return app
