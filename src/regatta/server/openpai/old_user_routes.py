"""What older clients of OpenPAI's change of a user, a field at a time, and its v1 routes."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from regatta.server.accounts.caller import require_admin
from regatta.server.accounts.users import NewUser, UserChanges, delete_user, get_user, update_user
from regatta.server.openpai.account_bodies import (
    AdminBody,
    ClustersBody,
    EmailBody,
    ExtensionBody,
    OldClustersBody,
    OldUserBody,
    PasswordBody,
    UserNameBody,
    read_body,
    said,
)
from regatta.server.openpai.account_shapes import Message, UserInfo
from regatta.server.openpai.openpai_schemas import body_of, openpai_answers
from regatta.server.openpai.user_routes import CREATED, ME, read_user, require_self_or_admin
from regatta.server.openpai_errors import forbidden, invalid_parameters
from regatta.server.responses import answer
from regatta.server.schemas import of
from regatta.server.team.gate import Asking, address_of
from regatta.server.team.team import Team


def user_field_routes(team: Team, prefix: str) -> APIRouter:
    routes = APIRouter(prefix=prefix, tags=["users"])

    def put(field: str, kind: type) -> dict[str, object]:
        return {
            "path": f"/{{user}}/{field}",
            "status_code": 201,
            "responses": CREATED,
            "openapi_extra": body_of(kind),
        }

    @routes.put(**put("password", PasswordBody))  # type: ignore[arg-type]
    async def password(caller: Asking, user: str, request: Request) -> Response:
        """An admin needs not know the old one."""
        require_self_or_admin(caller, user)
        body = await read_body(request, PasswordBody)
        if caller.admin:
            await team.reception.set_password(caller, user, body.new_password)
        else:
            await team.reception.change_own_password(
                caller, body.old_password, body.new_password, address=address_of(request)
            )
        return answer(Message("update user password successfully."), 201)

    @routes.put(**put("email", EmailBody))  # type: ignore[arg-type]
    async def email(caller: Asking, user: str, request: Request) -> Response:
        require_self_or_admin(caller, user)
        body = await read_body(request, EmailBody)
        await team.database.run(update_user, user, UserChanges(email=body.email))
        return answer(Message("Update user email data successfully."), 201)

    @routes.put(**put("admin", AdminBody))  # type: ignore[arg-type]
    async def admin(caller: Asking, user: str, request: Request) -> Response:
        require_admin(caller)
        body = await read_body(request, AdminBody)
        await team.database.run(update_user, user, UserChanges(admin=body.admin))
        return answer(Message("Update user admin permission successfully."), 201)

    @routes.put(**put("virtualcluster", ClustersBody))  # type: ignore[arg-type]
    async def virtual_cluster(caller: Asking, user: str, request: Request) -> Response:
        require_admin(caller)
        body = await read_body(request, ClustersBody)
        await _grant(team, user, body.virtual_cluster)
        return answer(Message("Update user virtualCluster data successfully."), 201)

    @routes.put(**put("extension", ExtensionBody))  # type: ignore[arg-type]
    async def extension(caller: Asking, user: str, request: Request) -> Response:
        """The keys that are sent; others stay."""
        require_self_or_admin(caller, user)
        body = await read_body(request, ExtensionBody)
        await team.database.run(update_user, user, UserChanges(extension=body.extension))
        return answer(Message("Update user extension data successfully."), 201)

    return routes


def v1_user_routes(team: Team) -> APIRouter:
    routes = APIRouter(prefix="/api/v1/user", tags=["users"])

    @routes.get("/{user}", responses=openpai_answers({200: of(UserInfo)}))
    async def one_user(caller: Asking, user: str) -> Response:
        name = caller.name if user == ME else user
        require_self_or_admin(caller, name)
        return answer(await read_user(team, name))

    @routes.put("", status_code=201, responses=CREATED, openapi_extra=body_of(OldUserBody))
    async def make_or_change(caller: Asking, request: Request) -> Response:
        require_admin(caller)
        body = await read_body(request, OldUserBody)
        if body.modify:
            changes = UserChanges(admin=said(body.admin))
            if body.password is None:
                await team.database.run(update_user, body.username, changes)
            else:
                await team.reception.set_password(caller, body.username, body.password, changes)
        elif body.password is None:
            raise invalid_parameters("password is missing; a new user needs one")
        else:
            new = NewUser(body.username, admin=bool(said(body.admin)))
            await team.reception.create_user(caller, new, body.password)
        return answer(Message("update successfully"), 201)

    @routes.delete("", status_code=201, responses=CREATED, openapi_extra=body_of(UserNameBody))
    async def remove(caller: Asking, request: Request) -> Response:
        require_admin(caller)
        body = await read_body(request, UserNameBody)
        await team.database.run(delete_user, body.username)
        return answer(Message("remove successfully"), 201)

    granted = body_of(OldClustersBody)

    @routes.put(
        "/{user}/virtualClusters", status_code=201, responses=CREATED, openapi_extra=granted
    )
    async def virtual_clusters(caller: Asking, user: str, request: Request) -> Response:
        require_admin(caller)
        body = await read_body(request, OldClustersBody)
        names = [name.strip() for name in body.virtual_clusters.split(",")]
        await _grant(team, user, [name for name in names if name])
        return answer(Message("update user virtual clusters successfully"), 201)

    return routes


async def _grant(team: Team, user: str, clusters: list[str]) -> None:
    found = await team.database.read(get_user, user)
    if found.admin:
        raise forbidden("Admin's virtual clusters cannot be updated.")
    changes = UserChanges(virtual_clusters=clusters)
    await team.database.run(update_user, user, changes, team.settings.virtual_clusters)
