"""Refuses query parameters that a route does not know, or that come twice.

What is dropped in silence does harm: `dryrun` for `dryRun` would submit, and `endedbefore` for
`endedBefore` remove every finished job.
"""

from __future__ import annotations

from typing import Any

from fastapi import Depends
from starlette.requests import Request

from regatta.api.checks.suggestions import did_you_mean, listed, shown_key
from regatta.api.errors import BadRequest

#: Of a path: more parameters than any route has are told of as one.
_MOST = 100


def _known_alone(request: Request) -> None:
    sent = request.query_params.multi_items()
    if not sent:
        return
    known = _known_to(request.scope["route"])
    if len(sent) > _MOST:
        raise BadRequest(f"the query has {len(sent):,} parameters; {_known_here(known)}")
    names = [name for name, _ in sent]
    for name in names:
        if name not in known:
            meant = did_you_mean(name, [other for other in known if other not in names])
            said = f"{shown_key(name)}: unknown query parameter; {meant}{_known_here(known)}"
            raise BadRequest(said)
        if names.count(name) > 1:
            raise BadRequest(f"{name}: given {names.count(name)} times; give it once")


def _known_to(route: Any) -> list[str]:
    return [field.alias for field in route.dependant.query_params]


def _known_here(known: list[str]) -> str:
    return f"Known here: {listed(known)}" if known else "There are none here"


#: For `include_router(dependencies=...)`.
KNOWN_QUERIES = [Depends(_known_alone)]
