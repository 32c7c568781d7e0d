"""What the engine has to give, and the server itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from regatta.daemon.about import ServerInfo
from regatta.engines.inventory import Capacity, Storage
from regatta.server.responses import answer, answer_many
from regatta.server.routes.answers_in_turn import LONG
from regatta.server.routes.engine_of import AskedEngine
from regatta.server.schemas import NOTHING, answers, of


def server_routes(
    describe: Callable[[], dict[str, Any]],
    stop: Callable[[], None],
    may_stop: Callable[[Request], None] = lambda _: None,
) -> APIRouter:
    """`may_stop` raises where whoever asks may not end the server."""
    routes = APIRouter(tags=["server"])

    @routes.get("/capacity", responses=answers({200: of(Capacity)}), dependencies=LONG)
    async def capacity(engine: AskedEngine, namespace: str | None = None) -> Response:
        found = await engine.capacity(namespace)
        return await answer_many(lambda: found)

    @routes.get("/storage", responses=answers({200: of(Storage)}))
    async def storage(engine: AskedEngine) -> Response:
        """What is kept of jobs and runs, how much room it takes, and the bounds that hold."""
        return answer(await engine.storage())

    @routes.get("/server", responses=answers({200: of(ServerInfo)}))
    async def server(engine: AskedEngine) -> Response:
        return answer({**describe(), **msgspec.to_builtins(await engine.traits())})

    @routes.post("/server/stop", status_code=202, responses=answers({202: NOTHING}))
    async def stop_server(request: Request) -> Response:
        """Ends the server. Replicas run on under their supervisors; the next server finds them."""
        may_stop(request)
        stop()
        return answer({}, 202)

    return routes
