"""Users, as OpenPAI's clients ask for them, make them and change them.

Admins ask about everybody; others about themselves alone, and what they are told of another does
not depend on whether there is one of that name. Applications ask about nobody.
"""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from regatta.server.accounts.account_rules import key_of
from regatta.server.accounts.caller import Caller, require_admin, require_person, require_self
from regatta.server.accounts.user_groups import (
    add_to_group,
    list_groups,
    remove_from_group,
    set_groups,
)
from regatta.server.accounts.users import (
    NewUser,
    UserChanges,
    delete_user,
    get_user,
    list_users,
    update_user,
)
from regatta.server.openpai.account_bodies import (
    GroupListBody,
    GroupNameBody,
    NewUserBody,
    OwnUpdateBody,
    UserUpdateBody,
    read_body,
    said,
)
from regatta.server.openpai.account_shapes import Message, UserInfo, user_info
from regatta.server.openpai.openpai_schemas import body_of, list_of, openpai_answers
from regatta.server.openpai_errors import invalid_parameters
from regatta.server.responses import answer, answer_many
from regatta.server.schemas import of
from regatta.server.team.gate import Asking, address_of
from regatta.server.team.team import Team

#: Whoever asks, in place of a name.
ME = "me"
CREATED = openpai_answers({201: of(Message)})


def user_routes(team: Team, prefix: str) -> APIRouter:
    """`prefix`: OpenPAI answers under two of them."""
    routes = APIRouter(prefix=prefix, tags=["users"])
    _reads(routes, team)
    _writes(routes, team)
    _memberships(routes, team)
    return routes


def require_self_or_admin(caller: Caller, name: str) -> None:
    require_person(caller)
    if key_of(name) != key_of(caller.name):
        require_admin(caller)


async def read_user(team: Team, name: str) -> UserInfo:
    user = await team.database.read(get_user, name)
    groups = await team.database.read(list_groups)
    return user_info(user, groups, team.settings.virtual_clusters)


def _reads(routes: APIRouter, team: Team) -> None:
    @routes.get("", responses=openpai_answers({200: list_of(UserInfo)}))
    async def users(caller: Asking) -> Response:
        require_admin(caller)
        found = await team.database.read(list_users)
        groups = await team.database.read(list_groups)
        clusters = team.settings.virtual_clusters
        return await answer_many(lambda: [user_info(user, groups, clusters) for user in found])

    @routes.get(f"/{ME}", responses=openpai_answers({200: of(UserInfo)}))
    async def oneself(caller: Asking) -> Response:
        require_person(caller)
        return answer(await read_user(team, caller.name))

    @routes.get("/{user}", responses=openpai_answers({200: of(UserInfo)}))
    async def one_user(caller: Asking, user: str) -> Response:
        require_self_or_admin(caller, user)
        return answer(await read_user(team, user))


def _writes(routes: APIRouter, team: Team) -> None:
    @routes.post("", status_code=201, responses=CREATED, openapi_extra=body_of(NewUserBody))
    async def create(caller: Asking, request: Request) -> Response:
        require_admin(caller)
        body = await read_body(request, NewUserBody)
        new = NewUser(
            body.username,
            admin=body.admin,
            email=body.email,
            virtual_clusters=body.virtual_cluster,
            extension=body.extension,
        )
        clusters = team.settings.virtual_clusters
        await team.reception.create_user(caller, new, body.password, clusters)
        return answer(Message("User is created successfully"), 201)

    @routes.put("", status_code=201, responses=CREATED, openapi_extra=body_of(UserUpdateBody))
    async def update(caller: Asking, request: Request) -> Response:
        """What is not sent stays as it is; `patch: false` replaces the extension as a whole."""
        require_admin(caller)
        body = await read_body(request, UserUpdateBody)
        data, clusters = body.data, team.settings.virtual_clusters
        changes = UserChanges(
            email=said(data.email),
            admin=said(data.admin),
            virtual_clusters=said(data.virtual_cluster),
            extension=said(data.extension),
            replace_extension=not body.patch,
        )
        password = said(data.password)
        if password is None:
            await team.database.run(update_user, data.username, changes, clusters)
        else:
            await team.reception.set_password(caller, data.username, password, changes, clusters)
        return answer(Message(f"update user {data.username} successfully."), 201)

    @routes.put("/me", status_code=201, responses=CREATED, openapi_extra=body_of(OwnUpdateBody))
    async def update_self(caller: Asking, request: Request) -> Response:
        require_person(caller)
        body = await read_body(request, OwnUpdateBody)
        data = body.data
        require_self(caller, data.username)
        changes = UserChanges(
            email=said(data.email),
            extension=said(data.extension),
            replace_extension=not body.patch,
        )
        new, old = said(data.new_password), said(data.old_password)
        if new is None:
            await team.database.run(update_user, caller.name, changes)
        elif old is None:
            raise invalid_parameters("oldPassword is missing; newPassword is taken only with it")
        else:
            address = address_of(request)
            await team.reception.change_own_password(
                caller, old, new, address=address, besides=changes
            )
        return answer(Message(f"update user {caller.name} successfully."), 201)

    @routes.delete("/{user}", responses=openpai_answers({200: of(Message)}))
    async def remove(caller: Asking, user: str) -> Response:
        """The user's jobs and what the audit has of them stay."""
        require_admin(caller)
        await team.database.run(delete_user, user)
        return answer(Message("user is removed successfully"))


def _memberships(routes: APIRouter, team: Team) -> None:
    one, several = body_of(GroupNameBody), body_of(GroupListBody)

    @routes.put("/{user}/group", status_code=201, responses=CREATED, openapi_extra=one)
    async def join(caller: Asking, user: str, request: Request) -> Response:
        require_admin(caller)
        body = await read_body(request, GroupNameBody)
        joined = await team.database.run(add_to_group, user, body.groupname)
        return answer(Message(f"User {joined.name} is added into group {body.groupname}"), 201)

    @routes.delete("/{user}/group", status_code=201, responses=CREATED, openapi_extra=one)
    async def leave(caller: Asking, user: str, request: Request) -> Response:
        require_admin(caller)
        body = await read_body(request, GroupNameBody)
        left = await team.database.run(remove_from_group, user, body.groupname)
        return answer(Message(f"User {left.name} is removed from group {body.groupname}"), 201)

    @routes.put("/{user}/grouplist", status_code=201, responses=CREATED, openapi_extra=several)
    async def group_list(caller: Asking, user: str, request: Request) -> Response:
        require_admin(caller)
        body = await read_body(request, GroupListBody)
        await team.database.run(set_groups, user, body.grouplist)
        return answer(Message("update user grouplist successfully."), 201)
