"""Which answers are long: those that grow with the number of jobs, or of their tasks.

Each may have many megabytes, and is there from when it is made until it was sent. A team's server
has its accounts take turns for them; who serves one person gives none.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, nullcontext
from typing import Annotated

from fastapi import Depends, FastAPI
from starlette.requests import Request

TurnOf = Callable[[Request], AbstractAsyncContextManager[None]]
TakeTurn = Callable[[], Awaitable[None]]


def give_turns(app: FastAPI, turn_of: TurnOf) -> None:
    app.state.turn_of = turn_of


async def _take_turn(request: Request) -> AsyncGenerator[TakeTurn, None]:
    turn_of: TurnOf = getattr(request.app.state, "turn_of", lambda _: nullcontext())
    async with AsyncExitStack() as turn:
        yield lambda: turn.enter_async_context(turn_of(request))
        # Here the answer was sent, or nobody takes it any more.


#: As a parameter of a route that may answer at length: to be awaited before it begins to.
Turn = Annotated[TakeTurn, Depends(_take_turn)]


async def _in_turn(take_turn: Turn) -> None:
    await take_turn()


#: For the `dependencies` of a route that does so always.
LONG = [Depends(_in_turn)]
