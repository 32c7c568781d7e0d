"""How much a request may carry: what is larger is refused, by its announced size before any of it
is read, else where it gets too large.

The rest of it is read and forgotten by the connection: a client that hears a refusal only after
it has sent everything must not find the connection broken instead.
"""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from regatta.server.responses import refusal

#: The longest job file is 1 MiB; its JSON, with every character escaped, has six times as much.
LARGEST_BODY = 16 * 1024 * 1024
TOO_LARGE = (
    f"the body has {{}}, and {LARGEST_BODY // 2**20} MiB is the most; a job file itself may have "
    "1 MiB, and what is larger belongs into a volume"
)


class BodyLimit:
    """ASGI middleware, behind the doorkeeper."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        announced = _announced(scope)
        if announced > LARGEST_BODY:
            said = TOO_LARGE.format(f"{announced:,} bytes")
            await refusal(413, "TooLarge", said)(scope, receive, send)
            return
        read = 0

        async def counted() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > LARGEST_BODY:
                raise HTTPException(413, TOO_LARGE.format("more than that"))
            return message

        await self._app(scope, counted, send)


def _announced(scope: Scope) -> int:
    """The server has seen to the header's form."""
    return int(Headers(scope=scope).get("content-length", "0")) if scope["type"] == "http" else 0
