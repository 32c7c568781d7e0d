"""Who one is, a browser's session, and one's own tokens: what our own command and pages ask."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from regatta.daemon.about import NewToken, OwnToken, Whoami
from regatta.server.accounts.browser_sessions import check_browser, ended_cookie, session_cookie
from regatta.server.accounts.caller import Caller, require_person
from regatta.server.accounts.tokens import (
    USUAL_LIFE,
    Kind,
    Token,
    issue,
    list_tokens,
    living_token,
    revoke,
)
from regatta.server.accounts.user_groups import clusters_of, list_groups
from regatta.server.accounts.users import get_user
from regatta.server.openpai.account_bodies import Body, read_body
from regatta.server.openpai.openpai_schemas import body_of
from regatta.server.openpai_errors import invalid_token
from regatta.server.origins import Ours
from regatta.server.records.moments import said
from regatta.server.responses import answer, items
from regatta.server.schemas import NOTHING, answers, items_of, of
from regatta.server.team.account_namespaces import account_namespace
from regatta.server.team.gate import Asking, address_of, known_as
from regatta.server.team.team import Team


class SessionBody(Body):
    username: str
    password: str


DESCRIBED: tuple[type, ...] = (Whoami, OwnToken, NewToken, SessionBody)


def own_routes(team: Team, ours: Ours) -> APIRouter:
    routes = APIRouter(tags=["accounts"])
    _session(routes, team, ours)
    _tokens(routes, team)

    @routes.get("/whoami", responses=answers({200: of(Whoami)}))
    async def whoami(caller: Asking) -> Response:
        token = await team.database.read(living_token, caller.user_id, caller.handle, team.now())
        if token is None:  # it was revoked since it was let in
            raise invalid_token()
        return answer(await _who(team, caller.name, caller.kind, token.expires))

    return routes


async def _who(team: Team, name: str, kind: str, expires: int | None) -> Whoami:
    user = await team.database.read(get_user, name)
    groups = await team.database.read(list_groups)
    clusters = clusters_of(user, groups, team.settings.virtual_clusters)
    return Whoami(
        user.name,
        user.admin,
        user.groups,
        tuple(clusters),
        account_namespace(user.name),
        kind,
        _moment(expires),
    )


def _session(routes: APIRouter, team: Team, ours: Ours) -> None:
    signs_in = body_of(SessionBody)

    @routes.post(
        "/session", status_code=201, responses=answers({201: of(Whoami)}), openapi_extra=signs_in
    )
    async def begin(request: Request) -> Response:
        """Signs a browser in: the token comes as a cookie, and only our own pages may ask."""
        check_browser(request.method, request.headers, ours)
        body = await read_body(request, SessionBody)
        signed = await team.reception.sign_in(
            body.username,
            body.password,
            address=address_of(request),
            kind=Kind.BROWSER,
            known=known_as(request),
        )
        cookie = session_cookie(signed.token.value, USUAL_LIFE, secure=ours.secure)
        told = await _who(team, signed.name, Kind.BROWSER, signed.token.expires)
        return answer(told, 201, {"Set-Cookie": cookie})

    @routes.delete("/session", responses=answers({200: NOTHING}))
    async def end(caller: Asking) -> Response:
        """Revokes the token that was shown, and takes a browser's cookie away."""
        require_person(caller)
        await team.database.run(revoke, caller.user_id, caller.handle, team.now())
        return answer({}, 200, {"Set-Cookie": ended_cookie(secure=ours.secure)})


def _tokens(routes: APIRouter, team: Team) -> None:
    @routes.get("/tokens", responses=answers({200: items_of(OwnToken)}))
    async def tokens(caller: Asking) -> Response:
        require_person(caller)
        found = await team.database.read(list_tokens, caller.user_id, team.now())
        return await items([_own(token, caller) for token in found])

    @routes.post("/tokens", status_code=201, responses=answers({201: of(NewToken)}))
    async def create(caller: Asking) -> Response:
        """For an application: without an end, and good for jobs alone."""
        require_person(caller)
        issued = await team.database.run(issue, caller.user_id, Kind.APPLICATION, team.now())
        return answer(NewToken(issued.value, issued.handle, Kind.APPLICATION), 201)

    @routes.delete("/tokens/{handle}", responses=answers({200: NOTHING}))
    async def revoke_one(caller: Asking, handle: str) -> Response:
        require_person(caller)
        await team.database.run(revoke, caller.user_id, handle, team.now())
        return answer({})


def _own(token: Token, caller: Caller) -> OwnToken:
    return OwnToken(
        token.handle,
        token.kind,
        said(token.created),
        _moment(token.expires),
        _moment(token.last_used),
        token.handle == caller.handle,
    )


def _moment(millis: int | None) -> str | None:
    return None if millis is None else said(millis)
