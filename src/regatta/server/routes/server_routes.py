"""The machine, and the server itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from regatta.engines.base import Engine
from regatta.server.responses import answer


def server_routes(
    engine: Engine, describe: Callable[[], dict[str, Any]], stop: Callable[[], None]
) -> APIRouter:
    routes = APIRouter(tags=["server"])

    @routes.get("/machine")
    def machine() -> Response:
        return answer(engine.machine())

    @routes.get("/server")
    def server() -> Response:
        return answer(describe())

    @routes.post("/server/stop")
    async def stop_server() -> Response:
        """Ends the server. Replicas run on under their supervisors; the next server finds them."""
        stop()
        return answer({}, 202)

    return routes
