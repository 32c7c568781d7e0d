"""Answers go out in pieces, each once the one before it has left.

uvicorn waits for a client before it takes more of an answer, not after: what is handed over whole
lies there whole, and counts as sent, while a client has read nothing of it. In pieces little lies
there, and whoever sends knows when its client has, or is given up (`connections`).
"""

from __future__ import annotations

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send

PIECE = 64 * 1024


class InPieces:
    """ASGI middleware, in front of all others."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def in_pieces(message: Message) -> None:
            body = memoryview(message.get("body", b""))
            if len(body) > PIECE:
                for start in range(0, len(body), PIECE):
                    piece = body[start : start + PIECE]
                    await send({"type": message["type"], "body": piece, "more_body": True})
                    await asyncio.sleep(0)  # others are answered, and it is heard who has left
                # What ends an answer waits for all of it.
                message = {**message, "body": b""}
            await send(message)
            if message.get("more_body"):
                await asyncio.sleep(0)

        await self._app(scope, receive, in_pieces)
