"""The application of a team's server: PaddleJobs under `/regatta/v1`, OpenPAI's contract under
`/api`, and the gate in front of both."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

from regatta import __version__
from regatta.engines.base import Engine
from regatta.server import responses, schemas
from regatta.server.accounts.caller import Caller, require_admin
from regatta.server.app import API
from regatta.server.bounds.body_limit import CODE, BodyLimit
from regatta.server.openpai import account_routes, handlers, job_contract
from regatta.server.openpai.openpai_refusals import OpenPaiRefusal, is_openpai_path, openpai_refusal
from regatta.server.openpai.smaller_lists import SmallerLists
from regatta.server.origins import Ours
from regatta.server.routes.answers_in_turn import give_turns
from regatta.server.routes.engine_of import serve_engine
from regatta.server.routes.job_routes import job_routes
from regatta.server.routes.known_queries import KNOWN_QUERIES
from regatta.server.routes.server_routes import server_routes
from regatta.server.routes.stream_routes import stream_routes
from regatta.server.team import audit_routes as audit
from regatta.server.team import own_routes as own
from regatta.server.team.gate import Gate, caller_of, needs_nobody
from regatta.server.team.leaving import Leaving
from regatta.server.team.member_engine import MemberEngine
from regatta.server.team.team import Team

#: Of a body that somebody sends who is not known yet: a name and a password.
LARGEST_FROM_NOBODY = 64 * 1024
#: A body is read in one go, and nobody is answered meanwhile. A job file has 1 MiB at most, and as
#: JSON, with every line and every foreign letter escaped, less than this.
LARGEST_JOB = 4 * 1024 * 1024
#: Twice what an account's `extension` may have.
LARGEST_ELSE = 128 * 1024


def _most_of(scope: Scope) -> int:
    if needs_nobody(scope["method"], scope["path"]):
        return LARGEST_FROM_NOBODY
    return LARGEST_JOB if "/jobs" in scope["path"] else LARGEST_ELSE


def _too_large(scope: Scope, said: str) -> Response:
    theirs = is_openpai_path(scope["path"])
    code = "InvalidParametersError" if theirs else CODE
    scope["state"]["refused"] = code
    return openpai_refusal(413, code, said) if theirs else responses.refusal(413, code, said)


def _account_of(scope: Scope) -> int | None:
    caller: Caller | None = scope["state"].get("caller")
    return caller.user_id if caller else None


def _admins_only(request: Request) -> None:
    require_admin(caller_of(request))


def make_team_app(
    team: Team,
    ours: Ours,
    *,
    describe: Callable[[], dict[str, Any]],
    stop: Callable[[int], None],
    behind_proxy: bool = False,
) -> FastAPI:
    """`describe` and `stop` belong to the process that serves."""
    leaving = asyncio.Event()

    def leave(code: int = 0) -> None:
        leaving.set()
        stop(code)

    app = FastAPI(
        title="Regatta",
        version=__version__,
        openapi_url=f"{API}/openapi.json",
        docs_url=None,
        redoc_url=None,
        # The gate has taken slashes at the end away.
        redirect_slashes=False,
    )
    app.state.leave = leave

    @app.get("/healthz", tags=["server"], responses=schemas.answers({200: schemas.HEALTH}))
    async def health() -> Response:
        return responses.answer({"status": "ok", "version": __version__, "pid": os.getpid()})

    def engine_of(request: Request) -> Engine:
        def note_job(job: str) -> None:
            request.state.job = job

        return MemberEngine(team.desk, caller_of(request), note_job)

    serve_engine(app, engine_of)
    give_turns(
        app, lambda asked: team.desk.long_answers.of(caller_of(asked), asked.is_disconnected)
    )
    of_engines = (
        job_routes(),
        stream_routes(leaving),
        server_routes(describe, leave, _admins_only),
    )
    for routes in (*of_engines, own.own_routes(team, ours), audit.audit_routes(team)):
        app.include_router(routes, prefix=API, dependencies=KNOWN_QUERIES)
    account_routes.serve_accounts(app, team)
    job_contract.serve_jobs(app, team)
    handlers.install(app)
    described = (
        *(*account_routes.DESCRIBED, *job_contract.DESCRIBED),
        *(*own.DESCRIBED, *audit.DESCRIBED, OpenPaiRefusal),
    )
    schemas.install(app, needs_nobody, described)
    app.add_middleware(SmallerLists)
    app.add_middleware(BodyLimit, most_of=_most_of, refused=_too_large, caller_of=_account_of)
    app.add_middleware(Gate, team=team, ours=ours, behind_proxy=behind_proxy)
    app.add_middleware(Leaving)
    return app
