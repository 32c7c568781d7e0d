"""All of OpenPAI's routes about accounts, and the structures that they speak of."""

from __future__ import annotations

from fastapi import FastAPI

from regatta.server.openpai.account_bodies import BODIES
from regatta.server.openpai.account_shapes import ANSWERS
from regatta.server.openpai.group_routes import group_routes
from regatta.server.openpai.old_user_routes import user_field_routes, v1_user_routes
from regatta.server.openpai.sign_in_routes import sign_in_routes
from regatta.server.openpai.token_routes import token_routes
from regatta.server.openpai.user_routes import user_routes
from regatta.server.team.team import Team

#: For `schemas.install`.
DESCRIBED: tuple[type, ...] = (*ANSWERS, *BODIES)


def serve_accounts(app: FastAPI, team: Team) -> None:
    app.include_router(sign_in_routes(team))
    app.include_router(token_routes(team))
    for prefix in ("/api/v2/users", "/api/v2/user"):
        app.include_router(user_routes(team, prefix))
        app.include_router(user_field_routes(team, prefix))
    for prefix in ("/api/v2/groups", "/api/v2/group"):
        app.include_router(group_routes(team, prefix))
    app.include_router(v1_user_routes(team))
