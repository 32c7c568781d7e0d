"""The audit, for admins: the newest first, a page at a time."""

from __future__ import annotations

from typing import Annotated

import msgspec
from fastapi import APIRouter, Query
from starlette.responses import Response

from regatta.server.accounts.audit import MOST_ENTRIES, read_audit
from regatta.server.accounts.caller import require_admin
from regatta.server.records.moments import said
from regatta.server.responses import answer
from regatta.server.schemas import answers, of
from regatta.server.team.gate import Asking
from regatta.server.team.team import Team


class AuditEntry(msgspec.Struct, frozen=True):
    id: int
    at: str
    who: str
    what: str
    job: str
    address: str
    #: The code of a refusal; empty where all went well.
    result: str
    status: int


class AuditPage(msgspec.Struct, frozen=True):
    items: tuple[AuditEntry, ...]
    #: Asks for the next page; null where this was the last.
    before: int | None


DESCRIBED: tuple[type, ...] = (AuditEntry, AuditPage)


def audit_routes(team: Team) -> APIRouter:
    routes = APIRouter(tags=["accounts"])

    @routes.get("/audit", responses=answers({200: of(AuditPage)}))
    async def audit(
        caller: Asking,
        who: str | None = None,
        job: str | None = None,
        before: Annotated[int | None, Query(ge=1, le=2**63 - 1)] = None,
        limit: Annotated[int, Query(ge=1, le=MOST_ENTRIES)] = 100,
    ) -> Response:
        require_admin(caller)
        page = await team.database.read(read_audit, who=who, job=job, before=before, limit=limit)
        entries = tuple(
            AuditEntry(e.id, said(e.at), e.who, e.what, e.job, e.address, e.result, e.status)
            for e in page.entries
        )
        return answer(AuditPage(entries, page.before))

    return routes
