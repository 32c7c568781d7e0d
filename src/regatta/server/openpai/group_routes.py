"""Groups, as OpenPAI's clients ask for them, make them and change them. Everybody who is signed in
reads them; who is in one, and every change, is for admins."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from regatta.server.accounts.caller import require_admin, require_person
from regatta.server.accounts.user_groups import (
    Group,
    GroupChanges,
    create_group,
    delete_group,
    get_group,
    list_groups,
    members_of,
    update_group,
)
from regatta.server.openpai.account_bodies import (
    GroupUpdateBody,
    NewGroupBody,
    read_body,
    said,
)
from regatta.server.openpai.account_shapes import GroupInfo, GroupMember, Message, group_info
from regatta.server.openpai.openpai_schemas import body_of, list_of, openpai_answers
from regatta.server.responses import answer
from regatta.server.schemas import of
from regatta.server.team.gate import Asking
from regatta.server.team.team import Team

_CREATED = openpai_answers({201: of(Message)})


def group_routes(team: Team, prefix: str) -> APIRouter:
    """`prefix`: OpenPAI answers under two of them."""
    routes = APIRouter(prefix=prefix, tags=["groups"])

    @routes.get("", responses=openpai_answers({200: list_of(GroupInfo)}))
    async def groups(caller: Asking) -> Response:
        require_person(caller)
        return answer([group_info(group) for group in await team.database.read(list_groups)])

    @routes.get("/{group}", responses=openpai_answers({200: of(GroupInfo)}))
    async def one_group(caller: Asking, group: str) -> Response:
        require_person(caller)
        return answer(group_info(await team.database.read(get_group, group)))

    @routes.get("/{group}/userlist", responses=openpai_answers({200: list_of(GroupMember)}))
    async def members(caller: Asking, group: str) -> Response:
        require_admin(caller)
        found = await team.database.read(members_of, group)
        return answer([GroupMember(user.name, user.admin) for user in found])

    @routes.post("", status_code=201, responses=_CREATED, openapi_extra=body_of(NewGroupBody))
    async def create(caller: Asking, request: Request) -> Response:
        require_admin(caller)
        body = await read_body(request, NewGroupBody)
        new = Group(body.groupname, body.description, body.external_name, body.extension)
        await team.database.run(create_group, new, team.now())
        return answer(Message("group is created successfully"), 201)

    @routes.put("", status_code=201, responses=_CREATED, openapi_extra=body_of(GroupUpdateBody))
    async def update(caller: Asking, request: Request) -> Response:
        """What is not sent stays as it is; `patch: false` replaces the extension as a whole."""
        require_admin(caller)
        body = await read_body(request, GroupUpdateBody)
        changes = GroupChanges(
            description=said(body.data.description),
            external_name=said(body.data.external_name),
            extension=said(body.data.extension),
            replace_extension=not body.patch,
        )
        await team.database.run(update_group, body.data.groupname, changes)
        return answer(Message(f"update group {body.data.groupname} successfully."), 201)

    @routes.delete("/{group}", status_code=201, responses=_CREATED)
    async def remove(caller: Asking, group: str) -> Response:
        require_admin(caller)
        await team.database.run(delete_group, group)
        return answer(Message("group is removed successfully"), 201)

    return routes
