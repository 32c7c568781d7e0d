"""Long answers of a team's server: a few of each account at a time, from when one is made until it
was sent. Others of that account wait for their turn; nobody else does.

Whoever reads nothing of what they asked for holds their own turns alone, and those until their
connection is given up (`server/bounds/connections`).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, aclosing, asynccontextmanager

from starlette.exceptions import HTTPException

from regatta.engines.base import Lost, Synced, WatchUpdate
from regatta.server.accounts.caller import Caller
from regatta.server.team.submitting.turns import Turns

#: Of one account, and as many watches that begin: an engine that does not answer keeps those
#: waiting, and must not keep the account from its records.
AT_ONCE = 4
#: Nobody hears it; it is what proxies write down of a client that has left.
LEFT = 499


class LongAnswers:
    def __init__(self, require_still: Callable[[Caller], Awaitable[None]]) -> None:
        """`require_still` raises where the caller may not come in any more."""
        self._require_still = require_still
        self.turns, self.beginnings = Turns(AT_ONCE), Turns(AT_ONCE)

    @asynccontextmanager
    async def of(
        self, caller: Caller, has_left: Callable[[], Awaitable[bool]]
    ) -> AsyncGenerator[None, None]:
        """`has_left`: whether nobody waits for the answer any more."""
        waits = self.turns.wanted(caller.user_id) >= AT_ONCE
        async with self.turns.of(caller.user_id):
            if waits:
                if await has_left():
                    raise HTTPException(LEFT, "whoever asked has left")
                await self._require_still(caller)
            yield

    async def begun(
        self, caller: Caller, watch: AsyncGenerator[WatchUpdate, None]
    ) -> AsyncGenerator[WatchUpdate, None]:
        """A watch has its turn while it tells what there is."""
        async with AsyncExitStack() as turn, aclosing(watch):
            await turn.enter_async_context(self.beginnings.of(caller.user_id))
            async for update in watch:
                if isinstance(update, Synced | Lost):
                    await turn.aclose()
                yield update
