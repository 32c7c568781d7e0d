"""What `openapi.json` says of answers. They are made of the structures that go out, whose schemas
msgspec knows; so nothing is described twice, and nothing is checked while it is sent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from fastapi import FastAPI
from starlette.responses import Response

from regatta.api.job import Job
from regatta.daemon.about import ServerInfo
from regatta.engines.base import Accepted, Preview
from regatta.engines.inventory import Capacity, EventView, PodView, Removal, RunView, Storage
from regatta.server.responses import Refusal

Schema = dict[str, Any]
Declared = dict[int | str, dict[str, Any]]

_ANSWERS = (
    *(Job, Accepted, Preview, PodView, RunView, Removal, EventView, Capacity, Storage),
    *(ServerInfo, Refusal),
)
_PLACE = "#/components/schemas/{name}"

#: What any route may answer: an engine, the doorkeeper or the server itself refuses.
_REFUSALS = {
    400: "The request cannot be read.",
    401: "No token, or a wrong one; in front of a cluster, it does not know who asks.",
    403: "From a web page, or under a foreign name; in front of a cluster, a missing right.",
    404: "No such job, or no such path.",
    409: "The job is in no state for that.",
    413: "The body is too large.",
    422: "The job, or what is asked of it, is not possible.",
    429: "Too often, or too much at once; `Retry-After` says when again.",
    500: "A mistake of the server's own.",
    503: "Not now: no ports are free, the server is too busy, or the cluster is away.",
    507: "The disk is full.",
}

NOTHING: Schema = {"type": "object", "properties": {}}
HEALTH: Schema = {
    "type": "object",
    "properties": {
        "status": {"type": "string"},
        "version": {"type": "string"},
        "pid": {"type": "integer"},
    },
    "required": ["status", "version", "pid"],
}


#: Of a stream: each of its server-sent events.
EVENT: Schema = {
    "type": "object",
    "properties": {
        "event": {
            "enum": [
                *("job", "gone", "synced", "event", "lines", "remark", "lost", "end", "error"),
            ]
        },
        "id": {"type": "string"},
        "data": {"type": "string", "contentMediaType": "application/json"},
    },
    "required": ["event", "data"],
}


class EventStream(Response):
    media_type = "text/event-stream"


def of(kind: type) -> Schema:
    return {"$ref": _PLACE.format(name=kind.__name__)}


def items_of(kind: type) -> Schema:
    items = {"type": "array", "items": of(kind)}
    return {"type": "object", "properties": {"items": items}, "required": ["items"]}


def answers(schemas: dict[int, Schema], *, streams: bool = False) -> Declared:
    """For a route's `responses`: by status what it answers, and every refusal."""
    declared: Declared = {
        status: {"description": said, "content": _json(of(Refusal))}
        for status, said in _REFUSALS.items()
    }
    for status, schema in schemas.items():
        declared[status] = {"description": "As asked.", "content": _json(schema)}
    if streams:
        ok = declared.setdefault(200, {"description": "As asked.", "content": {}})
        ok["content"][EventStream.media_type] = {"schema": EVENT}
    return declared


def _json(schema: Schema) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def install(
    app: FastAPI, needs_nobody: Callable[[str, str], bool], more: tuple[type, ...] = ()
) -> None:
    """Adds what the routes' answers refer to and whom they answer, when somebody asks for the
    description. `needs_nobody`: whether a method of a path is for all. `more`: what other routes
    than those of every server send and take."""
    plain = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            _, named = msgspec.json.schema_components((*_ANSWERS, *more), ref_template=_PLACE)
            described = plain()
            described["components"]["schemas"].update(named)
            _without_fastapis_own(described)
            _say_who_may(described, needs_nobody)
        assert app.openapi_schema is not None
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def _without_fastapis_own(described: dict[str, Any]) -> None:
    """FastAPI says of every route with parameters that it refuses them with 422 and a shape of its
    own. Ours are refused with 400, in our shape."""
    for operations in described["paths"].values():
        for operation in operations.values():
            refused = operation["responses"].get("422", {}).get("content", {})
            if refused.get("application/json", {}).get("schema") == _FASTAPIS:
                del operation["responses"]["422"]
    for name in ("HTTPValidationError", "ValidationError"):
        described["components"]["schemas"].pop(name, None)


def _say_who_may(described: dict[str, Any], needs_nobody: Callable[[str, str], bool]) -> None:
    described["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            if not needs_nobody(method.upper(), path):
                operation["security"] = [{"token": []}]


_FASTAPIS = {"$ref": _PLACE.format(name="HTTPValidationError")}
