"""What OpenPAI tells of itself, and how one signs in and out."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from regatta import __version__
from regatta.server.accounts.caller import require_person
from regatta.server.accounts.reception import SignedIn
from regatta.server.accounts.tokens import revoke
from regatta.server.openpai.account_bodies import SignInBody, read_body
from regatta.server.openpai.account_shapes import (
    Message,
    OldSignedIn,
    ServerAbout,
    SignedInNow,
    SignInAbout,
)
from regatta.server.openpai.openpai_schemas import body_of, openpai_answers
from regatta.server.responses import answer
from regatta.server.schemas import of
from regatta.server.team.gate import Asking, address_of, known_as
from regatta.server.team.team import Team

LOGIN = "/api/v2/authn/basic/login"
_ABOUT_SIGN_IN = SignInAbout("basic", LOGIN, "post")


def sign_in_routes(team: Team) -> APIRouter:
    routes = APIRouter(tags=["sign-in"])

    @routes.get("/api/v1", responses=openpai_answers({200: of(Message)}))
    async def welcome() -> Response:
        return answer(Message("Welcome to PAI RESTful API; this is Regatta."))

    @routes.get("/api/v2/info", responses=openpai_answers({200: of(ServerAbout)}))
    async def info() -> Response:
        return answer(ServerAbout("PAI RESTful API", f"v{__version__}", "k8s", "basic"))

    @routes.get("/api/v1/authn/info", responses=openpai_answers({200: of(SignInAbout)}))
    @routes.get("/api/v2/authn/info", responses=openpai_answers({200: of(SignInAbout)}))
    async def sign_in_info() -> Response:
        return answer(_ABOUT_SIGN_IN)

    signs_in = body_of(SignInBody, form=True)

    @routes.post(
        "/api/v1/token",
        responses=openpai_answers({200: of(OldSignedIn)}),
        openapi_extra=signs_in,
    )
    async def token(request: Request) -> Response:
        signed = await _signed_in(team, request)
        return answer(OldSignedIn(signed.token.value, signed.name, signed.admin))

    @routes.post(LOGIN, responses=openpai_answers({200: of(SignedInNow)}), openapi_extra=signs_in)
    async def login(request: Request) -> Response:
        signed = await _signed_in(team, request)
        return answer(SignedInNow(signed.token.value, signed.name, signed.admin))

    @routes.delete("/api/v2/authn/basic/logout", responses=openpai_answers({200: of(Message)}))
    async def logout(caller: Asking) -> Response:
        require_person(caller)
        await team.database.run(revoke, caller.user_id, caller.handle, team.now())
        return answer(Message("Logout successfully"))

    return routes


async def _signed_in(team: Team, request: Request) -> SignedIn:
    body = await read_body(request, SignInBody)
    return await team.reception.sign_in(
        body.username,
        body.password,
        address=address_of(request),
        expiration=body.expiration,
        known=known_as(request),
    )
