"""What is told to those who still wait when the server leaves: that it does, and not that something
broke. What they asked for may have been done; with the same key it is not done twice."""

from __future__ import annotations

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from regatta.api.errors import ServerStopped
from regatta.server.openpai.openpai_refusals import refused

LEAVING = (
    "the server is being stopped, and what you asked for may have been done or not; send it again "
    "when the server is back, a submission with the same key"
)


class Leaving:
    """ASGI middleware. uvicorn cancels what has not answered in time."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def watched(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except asyncio.CancelledError:
            if scope["type"] == "http" and not begun:
                await refused(scope["path"], ServerStopped(LEAVING))(scope, receive, send)
            raise
