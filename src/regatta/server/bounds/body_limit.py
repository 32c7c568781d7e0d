"""How much a request may carry, and those of one caller together: what is too much is refused, by
its announced size before any of it is read, else where it gets too large.

The rest of it is read and forgotten by the connection: a client that hears a refusal only after
it has sent everything must not find the connection broken instead.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from regatta.server.bounds.held_bodies import HeldBodies
from regatta.server.responses import refusal

#: The longest job file is 1 MiB; its JSON, with every character escaped, has six times as much.
LARGEST_BODY = 16 * 1024 * 1024
CODE = "TooLarge"
#: Nobody keeps what such a request brings along.
_BRINGS_NOTHING = frozenset({"GET", "HEAD", "OPTIONS"})
_ADVICE = "; a job file itself may have 1 MiB, and what is larger belongs into a volume"

Refuses = Callable[[Scope, str], Response]


def _refused(_: Scope, said: str) -> Response:
    return refusal(413, CODE, said)


class BodyLimit:
    """ASGI middleware, behind the doorkeeper."""

    def __init__(
        self,
        app: ASGIApp,
        most_of: Callable[[Scope], int] = lambda _: LARGEST_BODY,
        refused: Refuses = _refused,
        caller_of: Callable[[Scope], Hashable] = lambda _: "the owner",
    ) -> None:
        """`most_of` says how many bytes a request may have; `refused` words a refusal. `caller_of`:
        None of nobody known, whom `connections` keeps within bounds."""
        self._app, self._most_of, self._refused = app, most_of, refused
        self._caller_of, self._held = caller_of, HeldBodies()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        announced, most = _announced(scope), self._most_of(scope)
        if announced > most:
            said = _too_large(f"{announced:,} bytes", most)
            await self._refused(scope, said)(scope, receive, send)
            return
        caller = None if scope["method"] in _BRINGS_NOTHING else self._caller_of(scope)
        read = 0

        async def counted() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > most:
                raise HTTPException(413, _too_large("more than that", most))
            return message

        if caller is None:
            await self._app(scope, counted, send)
            return
        with self._held.of(caller) as hold:

            async def held() -> Message:
                # Raised where the body is read, a refusal is worded as any other of its path.
                hold(announced)
                message = await counted()
                hold(read)
                return message

            await self._app(scope, held, send)


def _announced(scope: Scope) -> int:
    """The server has seen to the header's form."""
    return int(Headers(scope=scope).get("content-length", "0"))


def _too_large(found: str, most: int) -> str:
    if most >= 2**20:
        return f"the body has {found}, and {most // 2**20} MiB is the most{_ADVICE}"
    return f"the body has {found}, and {most // 2**10} KiB is the most here"
