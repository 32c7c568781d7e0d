"""One's own tokens, as OpenPAI's clients list, make and revoke them.

Tokens are stored as hashes, so what is listed are their handles. To revoke one, either will do.
"""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from regatta.server.accounts.caller import require_person
from regatta.server.accounts.tokens import Kind, issue, list_tokens, living_token, revoke
from regatta.server.openpai.account_shapes import (
    ApplicationToken,
    CheckedToken,
    Message,
    TokenHandles,
)
from regatta.server.openpai.openpai_schemas import openpai_answers
from regatta.server.openpai_errors import invalid_token
from regatta.server.responses import answer
from regatta.server.schemas import of
from regatta.server.team.gate import Asking
from regatta.server.team.team import Team


def token_routes(team: Team) -> APIRouter:
    routes = APIRouter(prefix="/api/v2/tokens", tags=["tokens"])

    @routes.get("", responses=openpai_answers({200: of(TokenHandles)}))
    async def tokens(caller: Asking) -> Response:
        require_person(caller)
        found = await team.database.read(list_tokens, caller.user_id, team.now())
        return answer(TokenHandles(tuple(token.handle for token in found)))

    @routes.post("/application", responses=openpai_answers({200: of(ApplicationToken)}))
    async def application(caller: Asking) -> Response:
        require_person(caller)
        issued = await team.database.run(issue, caller.user_id, Kind.APPLICATION, team.now())
        return answer(ApplicationToken(issued.value))

    @routes.get("/check", responses=openpai_answers({200: of(CheckedToken)}))
    async def check(caller: Asking) -> Response:
        token = await team.database.read(living_token, caller.user_id, caller.handle, team.now())
        if token is None:  # it was revoked since it was let in
            raise invalid_token()
        ends = None if token.expires is None else token.expires // 1000
        seconds = token.created // 1000
        return answer(CheckedToken(caller.name, caller.application, seconds, ends))

    @routes.delete("/{token}", responses=openpai_answers({200: of(Message)}))
    async def revoke_token(caller: Asking, token: str) -> Response:
        """`token`: its handle, or its value."""
        require_person(caller)
        await team.database.run(revoke, caller.user_id, token, team.now())
        return answer(Message("revoke successfully"))

    return routes
